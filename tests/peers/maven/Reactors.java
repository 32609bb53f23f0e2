// What Maven itself makes of reactors, many in one JVM and offline: of each line of standard input,
// one of standard output. A line has the top POM, a directory with repositories of the scenario, and
// arguments of mvn, with tabs between them. It is run with what is in the `lib` of Maven.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.commons.cli.CommandLine;
import org.apache.maven.artifact.repository.ArtifactRepository;
import org.apache.maven.artifact.repository.ArtifactRepositoryPolicy;
import org.apache.maven.artifact.repository.MavenArtifactRepository;
import org.apache.maven.artifact.repository.layout.DefaultRepositoryLayout;
import org.apache.maven.cli.CLIManager;
import org.apache.maven.graph.DefaultProjectDependencyGraph;
import org.apache.maven.model.Model;
import org.apache.maven.model.Plugin;
import org.apache.maven.model.PluginExecution;
import org.apache.maven.model.building.ModelProblem;
import org.apache.maven.project.DefaultProjectBuildingRequest;
import org.apache.maven.project.MavenProject;
import org.apache.maven.project.ProjectBuilder;
import org.apache.maven.project.ProjectBuildingException;
import org.apache.maven.project.ProjectBuildingRequest;
import org.apache.maven.project.ProjectBuildingResult;
import org.apache.maven.repository.internal.MavenRepositorySystemUtils;
import org.codehaus.plexus.DefaultContainerConfiguration;
import org.codehaus.plexus.DefaultPlexusContainer;
import org.codehaus.plexus.PlexusConstants;
import org.codehaus.plexus.classworlds.ClassWorld;
import org.codehaus.plexus.util.xml.Xpp3Dom;
import org.eclipse.aether.DefaultRepositorySystemSession;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.repository.LocalRepository;

public class Reactors {
    private static final String SKIP = "maven.deploy.skip";

    private final ProjectBuilder builder;
    private final RepositorySystem system;
    private final Path local;

    private Reactors(Path local) throws Exception {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        DefaultPlexusContainer container = new DefaultPlexusContainer(new DefaultContainerConfiguration()
                .setClassWorld(new ClassWorld("plexus.core", loader))
                .setClassPathScanning(PlexusConstants.SCANNING_INDEX)
                .setAutoWiring(true)
                .setJSR250Lifecycle(true)
                .setName("maven"));
        builder = container.lookup(ProjectBuilder.class);
        system = container.lookup(RepositorySystem.class);
        this.local = local;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Reactors reactors = new Reactors(Path.of(args[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] given = line.split("\t");
            String[] arguments = Arrays.copyOfRange(given, 2, given.length);
            String answer;
            try {
                answer = reactors.read(new File(given[0]), new File(given[1]), arguments);
            } catch (Exception | StackOverflowError | OutOfMemoryError error) {
                answer = json(Map.of("errors", List.of(String.valueOf(error))));
            }
            out.println(answer);
        }
    }

    private String read(File pom, File scenario, String[] arguments) throws Exception {
        Map<String, Object> found = read(pom, scenario, arguments, true);
        if (found.get("errors").toString().contains("Unresolveable build extension")) {
            return json(read(pom, scenario, arguments, false));
        }
        return json(found);
    }

    private Map<String, Object> read(File pom, File scenario, String[] arguments, boolean plugins)
            throws Exception {
        List<String> errors = new ArrayList<>();
        List<MavenProject> projects = new ArrayList<>();
        List<Object> rows = new ArrayList<>();
        ProjectBuildingRequest request = request(scenario, arguments, plugins);
        try {
            for (ProjectBuildingResult each : builder.build(List.of(pom), true, request)) {
                collect(each, errors);
                projects.add(each.getProject());
            }
        } catch (ProjectBuildingException error) {
            if (error.getResults() == null || error.getResults().isEmpty()) {
                errors.add(String.valueOf(error.getMessage()));
            } else {
                for (ProjectBuildingResult each : error.getResults()) {
                    collect(each, errors);
                }
            }
        }
        if (errors.isEmpty()) {
            try {
                DefaultProjectDependencyGraph graph = new DefaultProjectDependencyGraph(projects);
                for (MavenProject each : graph.getSortedProjects()) {
                    List<Object> above = new ArrayList<>();
                    for (MavenProject on : graph.getUpstreamProjects(each, false)) {
                        above.add(on.getGroupId() + ":" + on.getArtifactId());
                    }
                    Map<String, Object> row = new LinkedHashMap<>();
                    row.put("file", each.getFile().getCanonicalPath());
                    row.put("name", each.getGroupId() + ":" + each.getArtifactId());
                    row.put("version", each.getVersion());
                    row.put("packaging", each.getPackaging());
                    row.put("skipped", isSkipped(each, request.getUserProperties()));
                    row.put("upstream", above);
                    row.put("managed", managed(each));
                    rows.add(row);
                }
            } catch (Exception error) {
                errors.add(String.valueOf(error.getMessage()));
            }
        }
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("errors", errors);
        all.put("projects", rows);
        return all;
    }

    private static void collect(ProjectBuildingResult result, List<String> errors) {
        for (ModelProblem each : result.getProblems()) {
            if (each.getSeverity() != ModelProblem.Severity.WARNING) {
                errors.add(each.getMessage());
            }
        }
    }

    private ProjectBuildingRequest request(File scenario, String[] arguments, boolean plugins)
            throws Exception {
        DefaultRepositorySystemSession session = MavenRepositorySystemUtils.newSession();
        Path own = local.resolve(Integer.toHexString(scenario.hashCode()));
        session.setLocalRepositoryManager(
                system.newLocalRepositoryManager(session, new LocalRepository(own.toFile())));
        session.setOffline(true);
        session.setConfigProperty("aether.offline.protocols", "file");
        Properties properties = new Properties();
        properties.putAll(System.getProperties());
        System.getenv().forEach((name, value) -> properties.setProperty("env." + name, value));
        session.setSystemProperties(properties);
        CommandLine line = new CLIManager().parse(arguments);
        Properties set = new Properties();
        if (line.hasOption(CLIManager.SET_SYSTEM_PROPERTY)) {
            for (String each : line.getOptionValues(CLIManager.SET_SYSTEM_PROPERTY)) {
                int end = each.indexOf('=');
                set.setProperty(end < 0 ? each : each.substring(0, end),
                        end < 0 ? "true" : each.substring(end + 1));
            }
        }
        properties.putAll(set);
        session.setUserProperties(set);
        ProjectBuildingRequest request = new DefaultProjectBuildingRequest()
                .setRepositorySession(session)
                .setProcessPlugins(plugins)
                .setSystemProperties(properties)
                .setUserProperties(set)
                .setLocalRepository(repository("local", own.toFile()))
                .setRemoteRepositories(repositories(scenario))
                .setPluginArtifactRepositories(repositories(scenario));
        List<String> active = new ArrayList<>();
        List<String> inactive = new ArrayList<>();
        if (line.hasOption(CLIManager.ACTIVATE_PROFILES)) {
            for (String each : String.join(",", line.getOptionValues(CLIManager.ACTIVATE_PROFILES)).split(",")) {
                boolean off = each.startsWith("!") || each.startsWith("-");
                (off ? inactive : active).add(each.replaceFirst("^[!+-]", ""));
            }
        }
        request.setActiveProfileIds(active);
        request.setInactiveProfileIds(inactive);
        return request;
    }

    private static List<ArtifactRepository> repositories(File scenario) throws Exception {
        List<ArtifactRepository> found = new ArrayList<>();
        try (Stream<Path> paths = Files.walk(scenario.toPath(), 3)) {
            List<Path> named = paths.filter(Files::isDirectory)
                    .filter(each -> each.getFileName().toString().matches("(?i)(remote-|local-|fake-)?repo(sitory)?([-_.0-9].*)?"))
                    .sorted()
                    .toList();
            for (Path each : named) {
                found.add(repository("scenario-" + found.size(), each.toFile()));
            }
        }
        return found;
    }

    private static ArtifactRepository repository(String id, File directory) {
        ArtifactRepositoryPolicy policy = new ArtifactRepositoryPolicy(true, "always", "ignore");
        return new MavenArtifactRepository(
                id, directory.toURI().toString(), new DefaultRepositoryLayout(), policy, policy);
    }

    /** Artifacts that a project lists for others, or imports, or gives way to. */
    private static List<Object> managed(MavenProject project) {
        List<Object> found = new ArrayList<>();
        Model model = project.getOriginalModel();
        if (model.getDependencyManagement() != null) {
            model.getDependencyManagement().getDependencies().forEach(each -> found.add(each.getArtifactId()));
        }
        if (model.getDistributionManagement() != null && model.getDistributionManagement().getRelocation() != null) {
            found.add(String.valueOf(model.getDistributionManagement().getRelocation().getArtifactId()));
        }
        return found;
    }

    /** https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#skip */
    private static boolean isSkipped(MavenProject project, Properties set) {
        String property = set.getProperty(SKIP, project.getProperties().getProperty(SKIP, "false"));
        Plugin plugin = project.getPlugin("org.apache.maven.plugins:maven-deploy-plugin");
        if (plugin == null) {
            return isSkip(property, project);
        }
        boolean bound = false;
        boolean sends = false;
        for (PluginExecution each : plugin.getExecutions()) {
            // Without the extension that has the packaging, the goal is not there.
            if (each.getGoals().contains("deploy") || each.getId().equals("default-deploy")) {
                bound = true;
                boolean off = "none".equals(each.getPhase());
                sends |= !off && !isSkip(setting(each.getConfiguration(), property), project);
            }
        }
        return bound ? !sends : isSkip(setting(plugin.getConfiguration(), property), project);
    }

    private static String setting(Object configuration, String property) {
        Xpp3Dom skip = configuration == null ? null : ((Xpp3Dom) configuration).getChild("skip");
        String value = skip == null ? null : skip.getValue();
        return value == null || value.equals("${" + SKIP + "}") ? property : value;
    }

    private static boolean isSkip(String value, MavenProject project) {
        boolean snapshot = project.getArtifact() != null && project.getArtifact().isSnapshot();
        return value.equalsIgnoreCase("true") || value.equals(snapshot ? "snapshots" : "releases");
    }

    private static String json(Object value) {
        StringBuilder text = new StringBuilder();
        if (value instanceof Map<?, ?> map) {
            map.forEach((key, each) -> text.append(text.isEmpty() ? "" : ",")
                    .append(json(key)).append(":").append(json(each)));
            return "{" + text + "}";
        }
        if (value instanceof List<?> list) {
            list.forEach(each -> text.append(text.isEmpty() ? "" : ",").append(json(each)));
            return "[" + text + "]";
        }
        if (value instanceof Boolean) {
            return value.toString();
        }
        for (char each : String.valueOf(value).toCharArray()) {
            boolean plain = each >= ' ' && each < 127 && each != '"' && each != '\\';
            text.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        return "\"" + text + "\"";
    }
}
