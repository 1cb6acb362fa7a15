package shop;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/**
 * Claims coupons of firstcome: see docs/spring.md. One is enough for a whole application. Of Jackson it uses the annotations
 * only, which are the same in Jackson 2 (Spring Boot 3) and Jackson 3 (Spring Boot 4).
 */
public final class Firstcome {
  /** What a claim got: issued or already_issued with a coupon, or a refusal, which is no exception. */
  public record Answer(String outcome, Coupon coupon, String detail, @JsonProperty("opens_at") Instant opensAt) {}

  /** benefit is the JSON of the coupon's prize, or of its campaign: a Map, a List, a String, a number, a Boolean, or null. */
  public record Coupon(long number, String code, Object benefit, boolean recorded) {}

  /** The answer is not known: there may be a coupon. Asking again later is safe and finds it. */
  public static final class UnknownException extends RuntimeException {}

  private record Reply(int status, Duration retryAfter, Answer answer) {}

  private final RestClient client;

  public Firstcome(String server, String key) {
    var http = new JdkClientHttpRequestFactory();
    http.setReadTimeout(Duration.ofSeconds(20)); // longer than a claim waits at the server
    var builder = RestClient.builder().baseUrl(server).requestFactory(http);
    client = key == null ? builder.build() : builder.defaultHeader("Authorization", "Bearer " + key).build();
  }

  /** Claims, and asks again after a 5xx, a 429 and a lost answer, until patience ends. */
  public Answer claim(String campaign, String user, Duration patience) throws InterruptedException {
    var until = Instant.now().plus(patience);
    for (long wait = 100; ; wait = Math.min(2 * wait, 5_000)) {
      var reply = ask(campaign, user);
      if (reply.answer() != null && reply.answer().outcome() != null) {
        return reply.answer();
      }
      if (reply.status() < 500 && reply.status() != 429) {
        throw new IllegalStateException("firstcome answers " + reply.status());
      }
      // No sooner than the server says, and not all at once.
      var pause = reply.retryAfter().plusMillis(ThreadLocalRandom.current().nextLong(wait + 1));
      if (Instant.now().plus(pause).isAfter(until)) {
        throw new UnknownException();
      }
      Thread.sleep(pause.toMillis());
    }
  }

  /** exchange, unlike retrieve, throws nothing for 403 and 410, which are answers here. */
  private Reply ask(String campaign, String user) {
    try {
      return client.post().uri("/v1/campaigns/{id}/claims", campaign).contentType(MediaType.APPLICATION_JSON).body(Map.of("user_id", user))
          .exchange((request, response) -> {
            var status = response.getStatusCode().value();
            return new Reply(status, retryAfter(response.getHeaders()), status < 500 ? response.bodyTo(Answer.class) : null);
          });
    } catch (RestClientException lost) {
      if (!(lost.getMostSpecificCause() instanceof IOException)) {
        throw lost;
      }
      return new Reply(503, Duration.ZERO, null); // no answer came, or half of one: as good as a 503
    }
  }

  /** A proxy may say it as a date, which is no number. */
  private static Duration retryAfter(HttpHeaders headers) {
    try {
      return Duration.ofSeconds(Long.parseLong(headers.getFirst("Retry-After")));
    } catch (NumberFormatException none) {
      return Duration.ZERO;
    }
  }
}
