from acme_core import greeting


def main() -> None:
    print(greeting("world"))
