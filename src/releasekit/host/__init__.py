"""The machine a run is on: files that last, processes, and the runner that a job is on."""
