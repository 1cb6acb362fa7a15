package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
)

type campaignCmd struct {
	Create campaignCreateCmd `cmd:"" help:"Create a campaign."`
	List   campaignListCmd   `cmd:"" help:"List the campaigns."`
	Show   campaignShowCmd   `cmd:"" help:"Show a campaign with its counters. If users are in line, measure for a second how fast the line is served."`
	Update campaignUpdateCmd `cmd:"" help:"Change terms of a campaign. Coupons keep the terms under which they were issued."`
	Pause  campaignPauseCmd  `cmd:"" help:"Pause a campaign: until it is resumed, claims are answered with paused."`
	Resume campaignResumeCmd `cmd:"" help:"Resume a paused campaign."`
	Close  campaignCloseCmd  `cmd:"" help:"Close a campaign permanently."`
}

// termsFlags are a campaign's terms. An absent flag sets nothing.
type termsFlags struct {
	Quantity   quantity       `placeholder:"N" help:"Coupons that may be in force at once, or unlimited."`
	OpensAt    timeOrNone     `placeholder:"TIME" help:"Time from which coupons are issued, like 2026-12-24T10:00:00+09:00, or \"2026-12-24 10:00\" with --tz, or none."`
	ClosesAt   timeOrNone     `placeholder:"TIME" help:"Time from which no coupon is issued any longer, or none."`
	Answer     string         `enum:",recorded,decided" default:"" placeholder:"recorded" help:"When to answer a claim: recorded, once its coupon is in the ledger, or decided, once the claim is decided."`
	Pace       paceOrNone     `placeholder:"N" help:"Let users wait in line, and issue N coupons a second to the line; or unlimited, as fast as the gate decides; or none for no line."`
	Waitlist   yesOrNo        `placeholder:"yes" help:"yes: users in line keep waiting when all coupons are in force; no: the line ends."`
	Benefit    jsonText       `placeholder:"JSON" help:"The benefit of a coupon: any JSON, like {\"percent_off\":10}."`
	Prizes     []prizeOrNone  `name:"prize" sep:"none" variable:"none" placeholder:"id=ID,quantity=N,name=TEXT,codes=imported,benefit=JSON" help:"A prize; repeat the flag for each, in order: the first quantity coupons get the first prize, and so on. The last prize has no quantity, because it gets the rest. name (default: the id), codes and benefit may be left out; benefit comes last. The prizes replace all that the campaign has. none: all coupons have --benefit."`
	Codes      string         `enum:",imported" default:"" placeholder:"imported" help:"imported: another system made the codes of a campaign without prizes. It begins paused, until firstcome codes import has brought them. For prizes, add codes=imported to --prize. It stays as it is when the campaign is created (default: firstcome makes the codes)."`
	ValidUntil timeOrNone     `placeholder:"TIME" help:"When coupons expire, or none. It must be in the future, and after the opening."`
	ValidFor   durationOrNone `placeholder:"DURATION" help:"How long after its issue a coupon expires, like 30d or 36h, or none."`
}

// check applies the zone of --tz to times without a zone, and returns their errors.
func (f *termsFlags) check(zone zoneName) (errs []error) {
	for _, one := range []struct {
		flag string
		at   *timeOrNone
	}{{"--opens-at", &f.OpensAt}, {"--closes-at", &f.ClosesAt}, {"--valid-until", &f.ValidUntil}} {
		if err := one.at.in(zone); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.flag, err))
		}
	}
	if len(f.Prizes) > 1 && slices.Contains(f.Prizes, noPrize) {
		errs = append(errs, errors.New("--prize: none cannot stand beside a prize"))
	}
	return errs
}

// changes returns the terms that are set, by their names in the API.
func (f termsFlags) changes() map[string]any {
	changes, coupon := map[string]any{}, map[string]any{}
	set := func(into map[string]any, field, value string) {
		if value != "" {
			into[field] = json.RawMessage(value)
		}
	}
	set(changes, "quantity", string(f.Quantity))
	set(changes, "opens_at", f.OpensAt.wire())
	set(changes, "closes_at", f.ClosesAt.wire())
	if f.Answer != "" {
		changes["answer"] = f.Answer
	}
	set(changes, "pace", string(f.Pace))
	set(changes, "waitlist", string(f.Waitlist))
	switch {
	case slices.Contains(f.Prizes, noPrize):
		set(changes, "prizes", string(noPrize))
	case len(f.Prizes) > 0:
		set(changes, "prizes", "["+strings.Join(texts(f.Prizes), ",")+"]")
	}
	set(coupon, "benefit", string(f.Benefit))
	if f.Codes != "" {
		coupon["codes"] = f.Codes
	}
	set(coupon, "valid_until", f.ValidUntil.wire())
	set(coupon, "valid_for", string(f.ValidFor))
	if len(coupon) > 0 {
		changes["coupon"] = coupon
	}
	return changes
}

type campaignCreateCmd struct {
	serverFlags
	termsFlags
	Name string `placeholder:"TEXT" help:"The campaign's name for people (default: its id)."`
	ID   string `arg:"" help:"The campaign's id: lower-case letters, digits and hyphens."`
}

func (c *campaignCreateCmd) Help() string {
	return `The first 100 users get a drink, the next 900 get 20 % off, all others free shipping:

  firstcome campaign create drop --quantity unlimited \
    --prize 'id=drink,quantity=100,name=A drink,benefit={"item":"drink"}' \
    --prize 'id=percent,quantity=900,name=20 % off,benefit={"percent_off":20}' \
    --prize 'id=shipping,name=Free shipping'`
}

func (c *campaignCreateCmd) check(terminal) []error {
	errs := c.termsFlags.check(c.TZ)
	if c.Quantity == "" {
		errs = append(errs, errors.New("--quantity: give the number of coupons, or unlimited"))
	}
	return errs
}

func (c *campaignCreateCmd) Run(ctx context.Context, t terminal) error {
	terms := c.changes()
	terms["id"], terms["name"] = c.ID, cmp.Or(c.Name, c.ID)
	text, err := json.Marshal(terms)
	if err != nil {
		return err
	}
	var n client.NewCampaign
	if err := json.Unmarshal(text, &n); err != nil {
		return usageError{err}
	}
	return answered(t, c.printCampaign)(c.client(t).CreateCampaign(ctx, n))
}

type campaignListCmd struct{ serverFlags }

func (c *campaignListCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	all, err := client.All(func(after string) (client.List[client.Campaign], error) { return calls.Campaigns(ctx, after, 0) })
	if err != nil {
		return explain(err)
	}
	return c.print(t, all, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSTATE\tQUANTITY\tIN FORCE\tISSUED\tOPENS AT\tNAME")
		for _, one := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, stateText(one), quantityText(one.Quantity), countText(one.InForce), countText(one.Issued), c.TZ.text(one.OpensAt), cell(one.Name))
		}
	})
}

type campaignShowCmd struct{ oneCampaign }

func (c *campaignShowCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	campaign, err := calls.Campaign(ctx, c.ID)
	if err != nil || c.json() {
		return answered(t, c.printCampaign)(campaign, err)
	}
	line, err := calls.Line(ctx, c.ID)
	rate := unknownRate
	if err == nil && line.Waiting > 0 {
		rate = c.rate(ctx, calls, line)
	}
	return c.print(t, campaign, func(w io.Writer) {
		c.writeCampaign(w, campaign)
		if err == nil { // otherwise the gate is lost or does not answer, as the state shows
			c.writeLine(w, line, rate)
		}
	})
}

const (
	// rateOver is how long a line is watched to measure how fast it is served.
	rateOver = time.Second
	// unknownRate is shown if the rate could not be measured.
	unknownRate = "-"
)

// rate watches a line for rateOver, and returns how fast it is served.
func (c *campaignShowCmd) rate(ctx context.Context, calls *client.Client, before client.Line) string {
	select {
	case <-ctx.Done():
		return unknownRate
	case <-time.After(rateOver):
	}
	after, err := calls.Line(ctx, c.ID)
	if err != nil {
		return unknownRate
	}
	return rateBetween(before, after)
}

// rateBetween returns how many tickets a second ended at the head of a line between two reads of it. Most were served; some users may have left.
func rateBetween(before, after client.Line) string {
	took := after.ServerTime.Sub(before.ServerTime.Time)
	if took <= 0 || after.Generation != before.Generation {
		return unknownRate
	}
	return fmt.Sprintf("%.1f tickets a second", float64(after.Serving-before.Serving)/took.Seconds())
}

type campaignUpdateCmd struct {
	oneCampaign
	termsFlags
	Name      string `placeholder:"TEXT" help:"The campaign's name for people."`
	IfVersion int64  `default:"0" placeholder:"N" help:"Change the campaign only if this is still its version (default: at any version)."`
}

// check refuses a command that changes nothing.
func (c *campaignUpdateCmd) check(terminal) []error {
	if c.Name == "" && len(c.changes()) == 0 {
		return []error{errors.New("name at least one of the terms to change: see firstcome campaign update --help")}
	}
	return c.termsFlags.check(c.TZ)
}

func (c *campaignUpdateCmd) Run(ctx context.Context, t terminal) error {
	changes := c.changes()
	if c.Name != "" {
		changes["name"] = c.Name
	}
	return answered(t, c.printCampaign)(c.client(t).UpdateCampaign(ctx, c.ID, c.IfVersion, changes))
}

type campaignPauseCmd struct{ oneCampaign }

func (c *campaignPauseCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, c.printCampaign)(c.client(t).Pause(ctx, c.ID))
}

type campaignResumeCmd struct{ oneCampaign }

func (c *campaignResumeCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, c.printCampaign)(c.client(t).Resume(ctx, c.ID))
}

type campaignCloseCmd struct {
	oneCampaign
	Yes bool `variable:"none" help:"Close the campaign without asking."`
}

// Run closes a campaign, if the caller confirms by typing its id.
func (c *campaignCloseCmd) Run(ctx context.Context, t terminal) error {
	if !c.Yes {
		if err := t.confirm(ctx, "A closed campaign never issues a coupon again.", c.ID); err != nil {
			return err
		}
	}
	return answered(t, c.printCampaign)(c.client(t).Close(ctx, c.ID))
}

// oneCampaign has the flags and the argument of a command about one campaign.
type oneCampaign struct {
	serverFlags
	ID string `arg:"" help:"The campaign's id."`
}
