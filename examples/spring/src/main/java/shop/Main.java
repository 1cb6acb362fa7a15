package shop;

import java.time.Duration;

/** Main CAMPAIGN USER… claims for each user in turn and prints what they got. */
public final class Main {
  public static void main(String[] args) throws InterruptedException {
    var server = System.getenv().getOrDefault("FIRSTCOME_SERVER", "http://127.0.0.1:8080");
    var firstcome = new Firstcome(server, System.getenv("FIRSTCOME_KEY"));
    for (var n = 1; n < args.length; n++) {
      var answer = firstcome.claim(args[0], args[n], Duration.ofMinutes(1));
      System.out.println(args[n] + " " + answer.outcome() + " " + (answer.coupon() == null ? "-" : answer.coupon().number()));
    }
  }
}
