package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/listfile"
)

type couponCmd struct {
	List   couponListCmd   `cmd:"" help:"List coupons of a campaign: the coupons of a user, the coupon with a code, or all."`
	Show   couponShowCmd   `cmd:"" help:"Show one coupon, by its campaign and its number or code, or by its code alone."`
	Void   couponVoidCmd   `cmd:"" help:"Void a coupon: its stock returns, and its user may claim again."`
	Issue  couponIssueCmd  `cmd:"" help:"Issue coupons to users directly, in the order given, even before the campaign opens or while it is paused."`
	Export couponExportCmd `cmd:"" help:"Write a snapshot of all coupons of a campaign, as CSV or JSON lines."`
}

type couponListCmd struct {
	oneCampaign
	User   userName   `variable:"none" placeholder:"USER" help:"List only coupons of this user."`
	Code   couponCode `variable:"none" placeholder:"CODE" help:"List only the coupon with this code, in any spelling that the server accepts."`
	Voided bool       `variable:"none" help:"Also list voided coupons."`
	Limit  count      `variable:"none" default:"100" help:"The most coupons to list (default: 100). To get all coupons, use coupon export."`
}

func (c *couponListCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	filter := client.CouponFilter{User: string(c.User), Code: string(c.Code), Voided: c.Voided}
	found := []client.Coupon{}
	more := true
	for more && len(found) < int(c.Limit) {
		filter.Limit = min(int(c.Limit)-len(found), maxPage)
		page, err := calls.FindCoupons(ctx, c.ID, filter)
		if err != nil {
			return explain(err)
		}
		found = append(found, page.Items...)
		if more = page.Next != nil; more {
			filter.After = *page.Next
		}
	}
	if err := c.printCoupons(t, found); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(t.err, "There may be more coupons: raise --limit, or get all with firstcome coupon export %s\n", c.ID)
	}
	return nil
}

type couponShowCmd struct {
	serverFlags
	Of     string     `arg:"" name:"campaign-or-code" help:"The campaign's id or, alone, a coupon's code: then all campaigns are searched."`
	Coupon couponName `arg:"" optional:"" help:"After a campaign: the coupon's number, or its code."`
}

func (c *couponShowCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	campaign, coupon := c.Of, c.Coupon
	switch {
	case coupon.number != 0:
		page, err := calls.FindCoupons(ctx, campaign, client.CouponFilter{Voided: true, Limit: 1, Number: coupon.number})
		if err == nil && len(page.Items) == 0 {
			err = fmt.Errorf("the ledger has no coupon %d of the campaign %s", coupon.number, campaign)
		}
		if err != nil {
			return explain(err)
		}
		return c.printCoupon(t, page.Items[0])
	case coupon.code == "":
		if _, err := firstcome.ParseCode(campaign); err != nil {
			return usageError{fmt.Errorf("<campaign-or-code>: %q is no coupon's code: name the coupon's number or code after its campaign, or only its code", campaign)}
		}
		campaign, coupon.code = "", campaign
	}
	found, err := calls.FindCode(ctx, campaign, coupon.code)
	if err != nil {
		return explain(err)
	}
	if found.Coupon == nil {
		return noCoupon(found)
	}
	return c.printCoupon(t, *found.Coupon)
}

// noCoupon returns the error for a code whose number has no coupon.
func noCoupon(h client.Holding) error {
	reason := h.Reason // a later server may have more
	switch h.Reason {
	case "lost":
		reason = "it was lost in a failure"
	case "dead_letter":
		reason = "the ledger refused it, and the dead letter is open: firstcome dead-letter list --campaign " + h.CampaignID
	case "dead_letter_voided":
		reason = "the ledger refused it, and an operator voided the dead letter"
	}
	return fmt.Errorf("this is the code of number %d of the campaign %s, which has no coupon: %s", h.Number, h.CampaignID, reason)
}

type couponVoidCmd struct {
	oneCampaign
	Number int64  `arg:"" help:"The coupon's number."`
	Reason string `required:"" variable:"none" placeholder:"TEXT" help:"The reason, for the audit log."`
}

func (c *couponVoidCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, c.printCoupon)(c.client(t).Void(ctx, c.ID, c.Number, c.Reason))
}

type couponIssueCmd struct {
	oneCampaign
	Users  []string `arg:"" optional:"" help:"The users' ids."`
	File   string   `variable:"none" placeholder:"FILE" help:"A file of users' ids: CSV, text between tabs, or one id a line; - reads standard input."`
	Column string   `variable:"none" placeholder:"NAME" help:"With --file: the heading or the number of the column with the ids (default: the column headed user_id or similar)."`
	Reason string   `variable:"none" placeholder:"TEXT" help:"The reason, for the audit log."`
	Exact  bool     `variable:"none" help:"With --file: take each whole line as an id, including blanks, quotes and commas."`
}

func (c *couponIssueCmd) Help() string {
	return `Up to 1,000 users are decided together, with no other claim in between. The exit status is 0 if each user now has a
coupon, new or earlier, and 1 if a user was refused. Issuing again is safe: a user who has a coupon keeps it.

The file may be CSV, as written by Excel, Sheets, psql --csv and firstcome coupon export, or text between tabs, as
written by mysql --batch. If a line is not clearly a user's id, the command reports the line's number and issues no
coupon at all. This includes a first line that may be a heading, like email or login: use --column if it is a heading,
or --exact if it is a user's id.`
}

// issueChunk is the most users that one call takes.
const issueChunk = 1000

func (c *couponIssueCmd) Run(ctx context.Context, t terminal) error {
	users, err := c.users(t)
	if err != nil {
		return err
	}
	calls := c.client(t)
	defer calls.CloseIdle()
	answers := make([]issued, 0, len(users))
	refused := 0
	for len(users) > 0 && err == nil {
		some := users[:min(len(users), issueChunk)]
		var got []client.Answer
		got, err = calls.Issue(ctx, c.ID, some, c.Reason)
		for n, a := range got {
			answers = append(answers, issued{some[n], a.Outcome, a.Coupon})
			if a.Coupon == nil {
				refused++
			}
		}
		users = users[len(some):]
	}
	// Show the answers even if a later call failed.
	if shown := c.printIssued(t, answers); err == nil {
		err = shown
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("no coupon for %s: the table says why", counted(int64(refused), "user", "s"))
	}
	return explain(err)
}

// An issued is the outcome for one user.
type issued struct {
	User    string         `json:"user_id"`
	Outcome string         `json:"outcome"`
	Coupon  *client.Coupon `json:"coupon"`
}

// users returns the ids from the arguments and from the file. It reports each mistake with its line, before any coupon is issued.
func (c *couponIssueCmd) users(t terminal) ([]string, error) {
	users := c.Users
	var errs []error
	check := func(where, user string) {
		if _, err := firstcome.ParseUserID(user); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	for _, user := range users {
		check("<users>", user)
	}
	if c.Exact && c.Column != "" || c.File == "" && (c.Exact || c.Column != "") {
		errs = append(errs, errors.New("--column and --exact need --file, and cannot be combined"))
	}
	if c.File != "" {
		in, err := openFile(t, c.File)
		if err != nil {
			return nil, usageError{fmt.Errorf("--file: %w", err)}
		}
		defer in.Close()
		f := listfile.Users{Name: c.File, Column: c.Column, Exact: c.Exact}
		ids, err := f.Read(in)
		if err != nil {
			errs = append(errs, err)
		} else {
			fmt.Fprintf(t.err, "%s from %s of %s: %s\n", counted(int64(len(ids)), "user", "s"), f.From, c.File, firstFew(ids))
		}
		users = append(users, ids...)
	}
	if len(users) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("<users>: name the users to issue coupons to, or a file of users with --file"))
	}
	if len(errs) > 0 {
		return nil, usageError{errors.Join(errs...)}
	}
	return users, nil
}

// firstFew returns the first three ids as text.
func firstFew(ids []string) string {
	const few = 3
	text := strings.Join(ids[:min(few, len(ids))], ", ")
	if len(ids) > few {
		text += ", …"
	}
	return text
}

// openFile opens a file, or standard input if its name is -.
func openFile(t terminal, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(t.in), nil
	}
	return os.Open(name)
}

func (c *couponIssueCmd) printIssued(t terminal, answers []issued) error {
	return c.print(t, answers, func(w io.Writer) {
		fmt.Fprintln(w, "USER\tOUTCOME\tNUMBER\tCODE\tRANK\tPRIZE")
		for _, a := range answers {
			if a.Coupon == nil {
				fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\n", a.User, a.Outcome)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%s\n", a.User, a.Outcome, a.Coupon.Number, a.Coupon.Code, a.Coupon.Rank, prizeID(a.Coupon))
		}
	})
}

// printCoupons prints coupons as a table or as JSON.
func (f serverFlags) printCoupons(t terminal, coupons []client.Coupon) error {
	defer tellMasked(t, coupons)
	return f.print(t, coupons, func(w io.Writer) {
		fmt.Fprintln(w, "CAMPAIGN\tNUMBER\tUSER\tCODE\tRANK\tPRIZE\tSTATE\tISSUED AT\tEXPIRES AT")
		for _, c := range coupons {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
				c.CampaignID, c.Number, c.UserID, c.Code, c.Rank, prizeID(&c), c.State, f.TZ.text(&c.IssuedAt), f.TZ.text(c.ExpiresAt))
		}
	})
}

// printCoupon prints one coupon as text or as JSON.
func (f serverFlags) printCoupon(t terminal, c client.Coupon) error {
	defer tellMasked(t, []client.Coupon{c})
	return f.print(t, c, func(w io.Writer) {
		fmt.Fprintf(w, "campaign\t%s\nnumber\t%d\nrank\t%d\nuser\t%s\ncode\t%s\nstate\t%s\n", c.CampaignID, c.Number, c.Rank, c.UserID, c.Code, c.State)
		if c.Prize != nil {
			fmt.Fprintf(w, "prize\t%s: %s\n", c.Prize.ID, cell(c.Prize.Name))
		}
		fmt.Fprintf(w, "benefit\t%s\nissued at\t%s\nexpires at\t%s\nrecorded\t%t\n", c.Benefit, f.TZ.text(&c.IssuedAt), f.TZ.text(c.ExpiresAt), c.Recorded)
		if c.Ticket != nil && c.Generation != nil {
			fmt.Fprintf(w, "ticket\t%d of generation %d\n", *c.Ticket, *c.Generation)
		}
		if c.Direct {
			fmt.Fprintln(w, "issued\tdirectly")
		}
	})
}

// prizeID returns the id of a coupon's prize, or - if it has none.
func prizeID(c *client.Coupon) string {
	if c.Prize == nil {
		return "-"
	}
	return c.Prize.ID
}

// tellMasked prints why ids and codes are masked, if they are. Only a masked code has an asterisk.
func tellMasked(t terminal, coupons []client.Coupon) {
	masked := func(c client.Coupon) bool { return strings.Contains(c.Code, "*") }
	if slices.ContainsFunc(coupons, masked) {
		fmt.Fprintln(t.err, "User ids and codes are masked: the role of this key sees them in full only in a search with --user or a code.")
	}
}
