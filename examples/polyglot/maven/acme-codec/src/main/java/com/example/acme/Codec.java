package com.example.acme;

/** Text as hexadecimal digits. */
public final class Codec {
  private Codec() {}

  /**
   * Encodes a text.
   *
   * @param text any text
   * @return two digits a byte
   */
  public static String encode(String text) {
    StringBuilder digits = new StringBuilder();
    for (byte each : text.getBytes(java.nio.charset.StandardCharsets.UTF_8)) {
      digits.append(String.format("%02x", each));
    }
    return digits.toString();
  }
}
