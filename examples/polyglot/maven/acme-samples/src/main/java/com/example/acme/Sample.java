package com.example.acme;

final class Sample {
  private Sample() {}

  public static void main(String[] arguments) {
    System.out.println(Client.greet("world"));
  }
}
