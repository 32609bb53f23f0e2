package com.example.acme;

/** Greets in code. */
public final class Client {
  private Client() {}

  /**
   * Greets somebody.
   *
   * @param name who that is
   * @return the greeting, encoded
   */
  public static String greet(String name) {
    return Codec.encode("Hello, " + name);
  }
}
