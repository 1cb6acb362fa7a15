package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// served makes the gate serve one user in line, and records the coupon.
func (f *farShop) served() {
	f.t.Helper()
	ctx := context.Background()
	stage.Must(f.t, stage.Err(f.gate.Serve(ctx, "c", 1)))
	state, err := f.gate.LineOf(ctx, "c")
	stage.Must(f.t, err)
	b := record.Batch{Campaign: "c", Epoch: 1, Coupons: f.gate.Take("c"), Line: gate.LineReport{Line: state.Line}}
	drained, err := f.ledger.Recorder.Record(ctx, b)
	stage.Must(f.t, err)
	f.gate.Settle("c", drained)
}

// TestF77ALineThatItsGateLostEndsAsLostOnceTheCampaignIsClosed has a line that the ledger knows, and one that it does not know.
func TestF77ALineThatItsGateLostEndsAsLostOnceTheCampaignIsClosed(t *testing.T) {
	for what, known := range map[string]bool{"a line that the ledger knows": true, "a line that nobody was served of": false} {
		t.Run(what, func(t *testing.T) {
			f := openFar(t)
			f.create(`{"id":"c","name":"n","quantity":9,"pace":{}}`)
			for _, user := range []string{"a", "b", "d"} {
				f.claim("c", user).want(t, 202, "waiting")
			}
			if known {
				f.served()
			}
			f.gate.Course("c").Gone = true
			unknown := func() {
				t.Helper()
				f.claim("c", "b").want(t, 503, "")
				f.call("GET", "/v1/campaigns/c/claims/b", "").want(t, 503, "")
				f.call("DELETE", "/v1/campaigns/c/claims/b", "").want(t, 503, "")
			}
			unknown()
			f.call("GET", "/v1/campaigns/c/line", "").want(t, 503, "")
			for range 2 { // the second time the campaign is closed, and the change still pending
				f.call("POST", "/v1/campaigns/c/close", "").want(t, 503, "")
			}
			unknown()
			line := f.call("GET", "/v1/campaigns/c/line", "").want(t, 200, "")
			want := `"ended":[{"generation":1,"reason":"lost",`
			if line.number("generation") != 2 || !strings.Contains(string(line.body), want) || strings.Count(string(line.body), "ended_at") != 1 {
				t.Errorf("the line is %s", line.body)
			}
			if through := map[bool]string{true: `"last_ticket_served":1}`, false: `"last_ticket_served":0}`}[known]; !strings.Contains(string(line.body), through) {
				t.Errorf("the line is %s, want %s", line.body, through)
			}
			if known { // a late recorder brings what the gate's journal still had
				c := stage.Coupon("c", 2)
				c.Generation, c.Ticket, c.IssuedAt = 1, 2, time.Now()
				b := record.Batch{Campaign: "c", Epoch: 1, Coupons: []firstcome.Coupon{c}}
				b.Line.Line = firstcome.Line{Generation: 1, LastTicket: 3, ServedThrough: 2, Served: 2, Waiting: 1}
				stage.Must(t, stage.Err(f.ledger.Recorder.Record(t.Context(), b)))
			}
			if again := f.line(); again.number("generation") != 2 {
				t.Errorf("the line is %s", again.body)
			}
		})
	}
}
