package shop;

import feign.FeignException;
import feign.Retryer;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ClaimsApi;
import org.openapitools.client.model.Problem;

final class Feign {
  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    // An answer with Retry-After, as of paused, is a RetryableException, whose cause is the answer.
    client.setBasePath(arguments[0]).setFeignBuilder(client.getFeignBuilder().retryer(Retryer.NEVER_RETRY));
    var claims = client.buildClient(ClaimsApi.class);
    Claims.run(arguments[1], claims::claim, (id, user) -> claims.readClaim(id, user, (String) null),
        e -> client.getObjectMapper().readValue(((FeignException) (e.getCause() instanceof FeignException ? e.getCause() : e)).contentUTF8(), Problem.class));
  }
}
