package shop;

import org.springframework.web.reactive.function.client.WebClientResponseException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ClaimsApi;
import org.openapitools.client.model.Problem;

final class Web {
  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.setBasePath(arguments[0]);
    var claims = new ClaimsApi(client);
    Claims.run(arguments[1], (id, who) -> claims.claim(id, who).block(), (id, user) -> claims.readClaim(id, user, null).block(),
        e -> ApiClient.createDefaultObjectMapper(null).readValue(((WebClientResponseException) e).getResponseBodyAsString(), Problem.class));
  }
}
