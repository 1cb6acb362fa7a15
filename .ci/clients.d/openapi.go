// Claims through the client that openapi-generator makes of openapi.yaml for Go.
package main

import (
	"clients/openapi/api"
	"context"
	"errors"
	"fmt"
	"os"
)

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Args[1]}}
	claims := openapi.NewAPIClient(configuration).ClaimsAPI
	ctx := context.Background()
	mina := "mina"
	for _, id := range []string{"open", "open", "rich", "sold", "early", "paused", "closed", "line", "none"} {
		answer, _, err := claims.Claim(ctx, os.Args[2]+"-"+id).ClaimRequest(openapi.ClaimRequest{UserId: &mina}).Execute()
		var refused *openapi.GenericOpenAPIError
		switch {
		case errors.As(err, &refused):
			problem, ok := refused.Model().(openapi.Problem)
			if !ok {
				panic(fmt.Sprintf("%s: %v: %s", id, err, refused.Body()))
			}
			fmt.Println(id, problem.Code, "-", "-")
		case err != nil:
			panic(err)
		default:
			tell(id, answer)
		}
	}
	for _, id := range []string{"open", "line"} {
		answer, _, err := claims.ReadClaim(ctx, os.Args[2]+"-"+id, mina).Execute()
		if err != nil {
			panic(err)
		}
		tell(id, answer)
	}
}

func tell(id string, answer *openapi.ClaimAnswer) {
	if answer.Coupon == nil {
		fmt.Println(id, answer.Outcome, *answer.Ticket, "-")
		return
	}
	benefit := "-"
	if rich, ok := answer.Coupon.Benefit.(map[string]any); ok {
		benefit = fmt.Sprint(rich["percent"])
	}
	fmt.Println(id, answer.Outcome, answer.Coupon.Number, benefit)
}
