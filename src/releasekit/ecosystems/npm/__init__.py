"""JavaScript packages and npm-like registries, declared."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Struct

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests, Setup, Tool
from releasekit.config.tables import Option, OptionTable
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables

NPMJS_HOST: Final = "registry.npmjs.org"
NPMJS: Final = f"https://{NPMJS_HOST}/"


class NpmInputs(Struct, frozen=True, kw_only=True):
    tag: Annotated[
        str,
        Declaration(
            "The dist-tag of every npm package. Default: `latest` for the newest version, the word "
            "of a prerelease (`beta`), or the line of an older release (`release-1.x`).",
            "text",
        ),
    ] = ""
    access: Annotated[
        Literal["", "public", "restricted"],
        Declaration(
            "Who may see npm packages with a scope: `public` or `restricted`. Default: their "
            "`publishConfig`, else npm's own default.",
            "choice",
        ),
    ] = ""
    force_registry: Annotated[
        bool,
        Declaration(
            "Publish every npm package to `npm-registry`, even if its `publishConfig` or its "
            "workspace names a different registry.",
            "bool",
        ),
    ] = False


class NpmOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "npm"

    workspaces: Annotated[tuple[str, ...], Option("Further roots of workspaces.")] = ()
    packages: Annotated[
        tuple[str, ...], Option("Globs of directories with packages that no workspace lists.")
    ] = ()
    exclude: Annotated[tuple[str, ...], Option("Globs of directories to leave out.")] = ()
    ignore_scripts: Annotated[bool, Option("Run no lifecycle scripts.")] = False
    pass_env: Annotated[
        tuple[str, ...], Option("Variables that lifecycle scripts see besides the usual ones.")
    ] = ()
    stage: Annotated[
        Literal["", "auto", "always", "never"],
        Option("The input `stage`, for npm alone."),
    ] = ""
    directory_url: Annotated[
        str,
        Option("The address at which a `dir:` registry will be served: tarball URLs are absolute."),
    ] = ""


TOOL: Final = Tool(
    program="npm",
    # Since then a list of files comes from a tree:
    # https://github.com/npm/npm-packlist/releases/tag/v6.0.0
    version="9",
    install="npm packages are packed by npm's own rules: install Node.js with npm 9 or later "
    "(actions/setup-node does), or leave npm out with `ecosystem`, and packages of others that "
    "need one of it with `exclude-packages`.",
)

DECLARATION: Final = EcosystemDeclaration(
    name="npm",
    folder=__name__,
    title="npm packages",
    registry=Declaration.registry(
        "npm-registry",
        "Where npm packages go: a registry's URL, or `dir:PATH` for a static directory. "
        "Default: registry.npmjs.org.",
    ),
    default_registry=NPMJS,
    pages=dict.fromkeys(("npmjs.com", "www.npmjs.com", "npmjs.org", "www.npmjs.org"), (NPMJS,)),
    secrets=(
        Declaration.secret(
            "npm-token",
            "The access token for `npm-registry`; not needed with trusted publishing.",
        ),
        Declaration.personal_secret(
            "npm-otp",
            "The one-time code for `approve` and `reject`, where no terminal can ask for it.",
        ),
    ),
    inputs=NpmInputs,
    options=NpmOptions,
    variables=ToolVariables(
        seen=(
            *(r"NODE_(ENV|OPTIONS)", r"(NPM|npm)_(CONFIG|config)_\w+", "PNPM_HOME"),
            *("BUN_INSTALL", r"NVM_\w+", r"VOLTA_\w+", r"COREPACK_\w+"),
        ),
    ),
    caches=(
        Cache("npm", "npm_config_cache", "~/.npm"),
        Cache("npm", "NPM_CONFIG_CACHE", "~/.npm"),
        Cache("npm", "npm_config_devdir", "~/.cache/node-gyp"),
        Cache("pnpm", "", "~/.local/share/pnpm/store"),
        Cache("pnpm", "", "~/.cache/pnpm"),
        Cache("yarn", "YARN_CACHE_FOLDER", "~/.cache/yarn"),
        Cache("yarn", "YARN_GLOBAL_FOLDER", "~/.yarn/berry"),
        # https://bun.sh/docs/pm/global-cache
        Cache("bun", "BUN_INSTALL_CACHE_DIR", ""),
        Cache("bun", "BUN_INSTALL", "~/.bun", below=("install/cache/",)),
        Cache("corepack", "COREPACK_HOME", "~/.cache/node/corepack"),
    ),
    setup=Setup(
        # https://docs.npmjs.com/trusted-publishers
        first="Publish the first version of a new package with a token, the secret NPM_TOKEN. Then "
        "register this repository and the workflow release.yml at "
        "https://www.npmjs.com/package/{name}/access.",
        steps="""\
- uses: actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # v7.0.0
  with:
    node-version: lts/*
""",
        installs={
            # https://pnpm.io/cli/install#--frozen-lockfile
            "pnpm-lock.yaml": "npx pnpm install --frozen-lockfile && npx pnpm run build",
            # https://yarnpkg.com/cli/install, https://classic.yarnpkg.com/lang/en/docs/cli/install/
            ".yarnrc.yml": "yarn install --immutable && yarn run build",
            "yarn.lock": "yarn install --frozen-lockfile && yarn run build",
            # https://bun.sh/docs/cli/install#production-mode
            "bun.lock": "npx bun install --frozen-lockfile && npx bun run build",
            "bun.lockb": "npx bun install --frozen-lockfile && npx bun run build",
            # https://docs.npmjs.com/cli/commands/npm-ci
            "package-lock.json": "npm ci && npm run build",
            "npm-shrinkwrap.json": "npm ci && npm run build",
            "": "npm install && npm run build",
        },
        inputs="""\
# npm-token: ${{ secrets.NPM_TOKEN }}  # for the first version of a new package
""",
        trusts=True,
    ),
    tool=TOOL,
    suffixes=(".tgz",),
    approves=True,
    manifests=Manifests(
        names=("package.json", "pnpm-workspace.yaml"), workspaces="workspaces", packages="packages"
    ),
)
