package shop;

import java.util.Map;
import org.openapitools.client.model.ClaimAnswer;
import org.openapitools.client.model.ClaimRequest;
import org.openapitools.client.model.Problem;

/** Claims through a client that openapi-generator makes of openapi.yaml, by whichever library. */
final class Claims {
  interface Claim {
    ClaimAnswer claim(String id, ClaimRequest who) throws Exception;
  }

  interface Read {
    ClaimAnswer read(String id, String user) throws Exception;
  }

  /** Returns the refusal that an exception brings. */
  interface Refusal {
    Problem of(Exception e) throws Exception;
  }

  static void run(String prefix, Claim claim, Read read, Refusal refusal) throws Exception {
    for (var id : new String[] {"open", "open", "rich", "sold", "early", "paused", "closed", "line", "none"}) {
      ClaimAnswer answer;
      try {
        answer = claim.claim(prefix + "-" + id, new ClaimRequest().userId("mina"));
      } catch (Exception e) {
        System.out.println(id + " " + refusal.of(e).getCode() + " - -");
        continue;
      }
      tell(id, answer);
    }
    for (var id : new String[] {"open", "line"}) {
      tell(id, read.read(prefix + "-" + id, "mina"));
    }
  }

  private static void tell(String id, ClaimAnswer answer) {
    var coupon = answer.getCoupon();
    var number = coupon == null ? answer.getTicket() : coupon.getNumber();
    var rich = coupon != null && coupon.getBenefit() instanceof Map<?, ?> benefit ? benefit.get("percent") : null;
    System.out.println(id + " " + answer.getOutcome() + " " + number + " " + (rich instanceof Number percent ? percent.intValue() : "-"));
  }
}
