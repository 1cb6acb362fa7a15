// Claims through the client that ogen makes of openapi.yaml.
package main

import (
	"clients/ogen/api"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/ogen-go/ogen/ogenerrors"
)

// nobody has no key: a server in development mode asks for none.
type nobody struct{}

func (nobody) Bearer(context.Context, api.OperationName) (api.Bearer, error) {
	return api.Bearer{}, ogenerrors.ErrSkipClientSecurity
}

func main() {
	client, err := api.NewClient(os.Args[1], nobody{})
	must(err)
	ctx := context.Background()
	mina := api.NewOptClaimReq(api.ClaimReq{UserID: api.NewOptUserIDIn("mina")})
	for _, id := range []api.CampaignID{"open", "open", "rich", "sold", "early", "paused", "closed", "line", "none"} {
		r, err := client.Claim(ctx, mina, api.ClaimParams{ID: api.CampaignID(os.Args[2]) + "-" + id})
		must(err)
		switch r := r.(type) {
		case *api.ClaimOK:
			tell(id, api.ClaimAnswer(*r))
		case *api.ClaimCreated:
			tell(id, api.ClaimAnswer(*r))
		case *api.ClaimAccepted:
			tell(id, api.ClaimAnswer(*r))
		case *api.ProblemHeaders:
			fmt.Println(id, r.Response.Code, "-", "-")
		case *api.ClaimGone:
			fmt.Println(id, r.Code, "-", "-")
		case *api.ClaimNotFound:
			fmt.Println(id, r.Code, "-", "-")
		default:
			panic(fmt.Sprintf("%T", r))
		}
	}
	for _, id := range []api.CampaignID{"open", "line"} {
		r, err := client.ReadClaim(ctx, api.ReadClaimParams{ID: api.CampaignID(os.Args[2]) + "-" + id, UserID: "mina"})
		must(err)
		tell(id, *r.(*api.ClaimAnswer))
	}
}

func tell(id api.CampaignID, answer api.ClaimAnswer) {
	if !answer.Coupon.Set {
		fmt.Println(id, answer.Outcome, answer.Ticket.Value, "-")
		return
	}
	var rich struct{ Percent *int }
	must(json.Unmarshal(answer.Coupon.Value.Benefit, &rich))
	benefit := "-"
	if rich.Percent != nil {
		benefit = fmt.Sprint(*rich.Percent)
	}
	fmt.Println(id, answer.Outcome, answer.Coupon.Value.Number, benefit)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
