"""What all other acme packages build on."""


def greeting(name: str) -> str:
    return f"Hello, {name}!"
