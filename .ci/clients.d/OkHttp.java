package shop;

import org.openapitools.client.ApiException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ClaimsApi;
import org.openapitools.client.model.ClaimAnswer;
import org.openapitools.client.model.ClaimRequest;
import org.openapitools.client.model.Problem;

final class OkHttp {
  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.setBasePath(arguments[0]);
    var claims = new ClaimsApi(client);
    Claims.run(arguments[1], new Claims.Client() {
      @Override
      public ClaimAnswer claim(String id, ClaimRequest who) throws Exception {
        return claims.claim(id, who);
      }

      @Override
      public ClaimAnswer read(String id, String user) throws Exception {
        return claims.readClaim(id, user, null);
      }

      @Override
      public Problem problem(Exception e) throws Exception {
        return Problem.fromJson(((ApiException) e).getResponseBody());
      }
    });
  }
}
