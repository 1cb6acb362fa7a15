package shop;

import org.openapitools.client.ApiException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ClaimsApi;
import org.openapitools.client.model.Problem;

final class OkHttp {
  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.setBasePath(arguments[0]);
    var claims = new ClaimsApi(client);
    Claims.run(arguments[1], claims::claim, (id, user) -> claims.readClaim(id, user, null),
        e -> Problem.fromJson(((ApiException) e).getResponseBody()));
  }
}
