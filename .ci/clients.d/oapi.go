// Claims through the client that oapi-codegen makes of openapi.yaml.
package main

import (
	"clients/oapi/api"
	"context"
	"fmt"
	"os"
)

func main() {
	client, err := api.NewClientWithResponses(os.Args[1])
	must(err)
	ctx, mina := context.Background(), "mina"
	for _, id := range []string{"open", "open", "rich", "sold", "early", "paused", "closed", "line", "none"} {
		r, err := client.ClaimWithResponse(ctx, os.Args[2]+"-"+id, api.ClaimJSONRequestBody{UserId: &mina})
		must(err)
		for _, answer := range []*api.ClaimAnswer{r.JSON200, r.JSON201, r.JSON202} {
			tell(id, answer)
		}
		for _, p := range []*api.Problem{r.ApplicationproblemJSON403, r.ApplicationproblemJSON404, r.ApplicationproblemJSON410} {
			if p != nil {
				fmt.Println(id, p.Code, "-", "-")
			}
		}
	}
	for _, id := range []string{"open", "line"} {
		r, err := client.ReadClaimWithResponse(ctx, os.Args[2]+"-"+id, mina, nil)
		must(err)
		tell(id, r.JSON200)
	}
}

func tell(id string, answer *api.ClaimAnswer) {
	switch {
	case answer == nil:
	case answer.Coupon == nil:
		fmt.Println(id, answer.Outcome, *answer.Ticket, "-")
	default:
		benefit := "-"
		if rich, ok := answer.Coupon.Benefit.(map[string]any); ok {
			benefit = fmt.Sprint(rich["percent"])
		}
		fmt.Println(id, answer.Outcome, answer.Coupon.Number, benefit)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
