package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Time is an instant on the wire: RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

// TimeLayout is how a Time is written, in UTC. It always has six digits, so that texts sort as instants do.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// MarshalJSON returns the instant as text.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+TimeLayout+`"`), nil
}

// UnmarshalJSON reads RFC 3339 with a zone and at most microseconds.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" { // no instant, like for every type that reads JSON
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("an instant is a string: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("an instant is RFC 3339 with a zone, like 2026-12-24T10:00:00+09:00, and not %q", s)
	}
	if at.Truncate(time.Microsecond) != at {
		return fmt.Errorf("an instant has at most microseconds: %q", s)
	}
	t.Time = at.UTC()
	return nil
}

// A Duration is a Go duration on the wire, like "720h".
type Duration time.Duration

// MarshalJSON returns the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads a Go duration.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("a duration is a string: %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`a duration is written like "720h" or "1h30m": %w`, err)
	}
	*d = Duration(v)
	return nil
}

// NewCampaign has the values for a new campaign. Absent values mean their defaults.
type NewCampaign struct {
	ID       string      `json:"id,omitempty"` // if absent, the server creates one
	Name     string      `json:"name"`
	Quantity *int64      `json:"quantity"` // nil: unlimited
	OpensAt  *Time       `json:"opens_at,omitempty"`
	ClosesAt *Time       `json:"closes_at,omitempty"`
	Answer   string      `json:"answer,omitempty"` // recorded (default) or decided
	Pace     *Pace       `json:"pace,omitempty"`   // nil if there is no waiting line
	Waitlist bool        `json:"waitlist,omitempty"`
	Coupon   CouponSpec  `json:"coupon"`
	Prizes   []PrizeSpec `json:"prizes,omitempty"` // by rank, in order; none if all coupons are alike
}

// A PrizeSpec is what the coupons of some ranks of a campaign are good for.
type PrizeSpec struct {
	ID       string          `json:"id"` // formed like a campaign's, and unique in the campaign
	Name     string          `json:"name"`
	Quantity *int64          `json:"quantity"` // how many ranks have the prize; nil for the last prize, which has what the others leave
	Benefit  json.RawMessage `json:"benefit"`
	// Codes is ImportedCodes if another system made the codes of these coupons, and empty otherwise. It is set at the creation.
	Codes string `json:"codes,omitempty"`
}

// ImportedCodes means that another system made the codes of coupons: see Client.ImportCodes.
const ImportedCodes = "imported"

// A Prize is a prize of a campaign, with how much of it was given.
type Prize struct {
	PrizeSpec
	From  int64  `json:"from"`  // the first rank with the prize
	To    *int64 `json:"to"`    // the last rank with it; nil for the last prize
	Given *int64 `json:"given"` // ranks that were given, also to coupons that were voided since; nil if unknown, like Campaign.InForce
	// RanOutAt is when the coupon with the rank To was issued, or the next one after it if that one was lost. It is nil until that is in the ledger.
	RanOutAt *Time `json:"ran_out_at"`
}

// A CouponPrize is the prize of a coupon.
type CouponPrize struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// A Pace is how fast a campaign's waiting line is served.
type Pace struct {
	PerSecond *int64 `json:"per_second"` // coupons a second; nil means as fast as the gate issues them
}

// A CouponSpec is the benefit of a campaign's coupons, and how long they are valid.
type CouponSpec struct {
	Benefit    json.RawMessage `json:"benefit"`
	ValidUntil *Time           `json:"valid_until"`
	ValidFor   *Duration       `json:"valid_for"`
	Codes      string          `json:"codes,omitempty"` // as in PrizeSpec, for a campaign without prizes
}

// A CodeList is a list of imported codes. The n-th rank of a prize gets its n-th entry.
type CodeList struct {
	Prize   string `json:"prize,omitempty"` // its id; empty for a campaign without prizes
	Entries int64  `json:"entries"`         // how many codes were imported
	Needed  int64  `json:"needed"`          // how many the campaign needs before it may be resumed
}

// ImportedList is the result of an import of codes.
type ImportedList struct {
	Added   int64 `json:"added"`   // 0 if the list had these codes already
	Entries int64 `json:"entries"` // of the list afterwards
}

// A Campaign is a campaign's terms and counters at ServerTime.
type Campaign struct {
	ID string `json:"id"`
	Terms
	Prizes  []Prize    `json:"prizes"`          // by rank, in order; nil if all coupons are alike. It stands for Terms.Prizes, which is nil here
	Codes   []CodeList `json:"codes,omitempty"` // the lists of imported codes, in the order of the prizes
	Version int64      `json:"version"`
	State   string     `json:"state"` // not_open, open, paused, sold_out, closed or unknown
	// GateState is ok, or why the gate's data is unknown and claims are answered with 503. The gate has lost the campaign (lost), is not verified yet
	// (unverified), has another gate, secret or ledger than the campaign (mismatch), has a ledger that is older than it was (ledger_rolled_back), is
	// in an epoch that has ended (stale_epoch), or did not answer (unknown).
	GateState string `json:"gate_state"`
	Waiting   *int64 `json:"waiting"`   // users in line; nil if unknown
	InForce   *int64 `json:"in_force"`  // nil if unknown because GateState is not ok
	Issued    *int64 `json:"issued"`    // like InForce
	Recorded  int64  `json:"recorded"`  // how many of the issued coupons the ledger has
	Remaining *int64 `json:"remaining"` // nil if unlimited, or unknown like InForce
	// The next three are times by the gate's clock. They are nil until it happens, and while GateState is not ok.
	OpenedAt   *Time `json:"opened_at"`   // the first decision while the campaign was open
	SoldOutAt  *Time `json:"sold_out_at"` // when no stock was left for the first time
	ClosedAt   *Time `json:"closed_at"`   // when an operator closed it
	CreatedAt  Time  `json:"created_at"`
	ServerTime Time  `json:"server_time"`
}

// A Coupon is the fact that a user was issued a number.
type Coupon struct {
	CampaignID string          `json:"campaign_id"`
	Number     int64           `json:"number"`
	Rank       int64           `json:"rank"` // the coupon's place in the order of the campaign's coupons, from 1; Number identifies it
	UserID     string          `json:"user_id"`
	Code       string          `json:"code"`    // empty for an imported code that is not shown: in lists, to support, and until the coupon is recorded
	State      string          `json:"state"`   // in_force or voided
	Prize      *CouponPrize    `json:"prize"`   // nil if the campaign has no prizes
	Benefit    json.RawMessage `json:"benefit"` // of the prize, if there is one
	IssuedAt   Time            `json:"issued_at"`
	ExpiresAt  *Time           `json:"expires_at"`
	Recorded   bool            `json:"recorded"`
	// Generation and Ticket are the place in the waiting line to which the coupon was issued; nil if it was issued without a line.
	Generation *int64 `json:"generation"`
	Ticket     *int64 `json:"ticket"`
	Direct     bool   `json:"direct,omitempty"` // issued directly, perhaps before the opening or during a pause
}

// An Answer is the answer to a claim: a coupon, a place in line, or a refusal.
type Answer struct {
	Outcome string  `json:"outcome"` // a word that firstcome.ParseOutcome knows
	Coupon  *Coupon `json:"coupon"`  // nil for a refusal, and in line
	*Place          // nil unless the outcome is waiting
	// Refusal is the server's refusal of a single claim: when the campaign opens, and when to ask again. It is nil if there is a coupon.
	Refusal *Problem `json:"-"`
}

// A Place is a user's place in a campaign's waiting line.
type Place struct {
	Ticket     int64 `json:"ticket"` // in the order of the claims, from 1 in each generation
	Generation int64 `json:"generation"`
	// Ahead is the most tickets before this one: those whose users left count until their turn.
	Ahead      int64  `json:"ahead"`
	ETASeconds *int64 `json:"eta_seconds"` // until it is this ticket's turn; nil if unknown
	// Likely means that there will be a coupon for this ticket if nothing changes: enough stock is left, and the campaign does not close before.
	Likely  bool    `json:"likely"`
	Serving bool    `json:"serving"` // the line is served now
	Reason  *string `json:"reason"`  // why the line is not served now: not_open or paused
	Until   *Time   `json:"until"`   // until when the line is not served, if known
	// ClosesAt is when the users who are still in line are sent away; nil if there is no known time.
	ClosesAt *Time `json:"closes_at"`
	// PollAfter is after how many seconds to poll the campaign's line again: see Client.Follow.
	PollAfter float64 `json:"poll_after"`
}

// A Line is the public state of a campaign's waiting line.
type Line struct {
	CampaignID string `json:"campaign_id"`
	Generation int64  `json:"generation"`  // grows by one each time that all users in line are sent away
	Serving    int64  `json:"serving"`     // the next ticket to be served; all tickets before it have ended
	LastTicket int64  `json:"last_ticket"` // the last ticket issued in this generation; 0 if none
	Waiting    int64  `json:"waiting"`     // users in line
	// LikelyThrough is the last ticket for which there will be a coupon if nothing changes. Nil if there is no such limit.
	LikelyThrough *int64      `json:"likely_through"`
	NextJoinedAt  *Time       `json:"next_joined_at"` // when the next user in line joined; nil if the line is empty, or the time is unknown
	Pace          *Pace       `json:"pace"`
	Waitlist      bool        `json:"waitlist"` // who waits stays in line when every coupon is in force
	State         string      `json:"state"`    // as in Campaign
	Ended         []EndedLine `json:"ended"`    // the last ended generations, latest first
	ServerTime    Time        `json:"server_time"`
}

// An EndedLine is an ended generation of a line. Users who were still in line were sent away.
type EndedLine struct {
	Generation       int64  `json:"generation"`
	Reason           string `json:"reason"` // the outcome of users who were sent away, sold_out or closed; or lost, if Redis lost the line
	EndedAt          Time   `json:"ended_at"`
	LastTicketServed int64  `json:"last_ticket_served"` // every ticket up to it had already ended
}

// A Fact is one thing that happened to a coupon. If the ledger has lost the coupon, which is a breach that people must look at, the fields after
// Number are null on the wire and zero here.
type Fact struct {
	Position     int64        `json:"position"`
	Kind         string       `json:"kind"` // coupon.issued or coupon.voided
	CampaignID   string       `json:"campaign_id"`
	Number       int64        `json:"number"`
	UserID       string       `json:"user_id"`
	Code         string       `json:"code"`          // empty if it is imported
	TermsVersion int64        `json:"terms_version"` // the version of the terms under which it was issued
	Rank         int64        `json:"rank"`          // as in Coupon
	Prize        *CouponPrize `json:"prize"`         // as in Coupon
	At           Time         `json:"at"`            // time of the issue or void
	Generation   *int64       `json:"generation"`    // like Ticket, as in Coupon
	Ticket       *int64       `json:"ticket"`
	Direct       bool         `json:"direct,omitempty"`
}

// A Change is a numbered change of a campaign.
type Change struct {
	Version int64   `json:"version"` // from 1, which created the campaign
	Kind    string  `json:"kind"`    // terms, pause, resume, close, void, rebuild or reconcile
	At      Time    `json:"at"`
	Refused bool    `json:"refused"`          // the gate refused the change: only the version advanced
	Terms   *Terms  `json:"terms"`            // only of terms and reconcile: all terms from then on
	Number  *int64  `json:"number"`           // of void
	UserID  *string `json:"user_id"`          // only of void: the user who held the number
	Paused  bool    `json:"paused,omitempty"` // like Closed, only of reconcile: the gate's state
	Closed  bool    `json:"closed,omitempty"`
}

// Rebuilt is the result of a rebuild of a campaign's gate.
type Rebuilt struct {
	Epoch int64 `json:"epoch"` // the epoch that began
	// Lost is how many numbers may have been issued, and are lost. Not all of them need have been coupons. At most this many users were answered with
	// one, with recorded false; if claims are answered only when their coupons are recorded, no user was.
	Lost       int64 `json:"lost"`
	Carried    int64 `json:"carried"`     // users in line who kept their places
	LostPlaces int64 `json:"lost_places"` // at least this many other users were in line, and may join again
}

// Reconciled is the result of a reconcile of a campaign whose ledger was restored from a backup.
type Reconciled struct {
	Rebuilt
	Recovered   int64 `json:"recovered"`    // coupons that the ledger got back
	DeadLetters int64 `json:"dead_letters"` // coupons that the ledger refused
	Voided      int64 `json:"voided"`       // coupons that the gate no longer has, and that are now void in the ledger
	// Unexplained is how many coupons are in force in the ledger and missing at the gate, although the versions that the ledger has forgotten are too
	// few to have voided all of them.
	Unexplained   int64 `json:"unexplained"`
	LedgerVersion int64 `json:"ledger_version"` // before the reconcile
	GateVersion   int64 `json:"gate_version"`   // before the reconcile
	// FactsFrom is the first position whose facts may differ from those that were read before. Readers of the campaign's facts must read again from
	// there. 0 means that the position is unknown, so they must read from the first fact.
	FactsFrom int64 `json:"facts_from"`
	// Followers copy facts elsewhere, like kafka/TOPIC. They have stopped copying those of the campaign until they are replayed.
	Followers []string `json:"followers"`
}

// Estimate is the expected result of a reconcile of a campaign.
type Estimate struct {
	CampaignID string `json:"campaign_id"`
	Recovered  int64  `json:"recovered"` // coupons that the gate has and the ledger lacks
	Voided     int64  `json:"voided"`    // coupons that are in force in the ledger, and that the gate issued and no longer has
	// Unexplained is the number of such coupons if there are more than the forgotten changes can have voided. They would stay in force, and Voided is
	// then 0.
	Unexplained   int64 `json:"unexplained"`
	LedgerVersion int64 `json:"ledger_version"`
	GateVersion   int64 `json:"gate_version"`
	LedgerEpoch   int64 `json:"ledger_epoch"`
	GateEpoch     int64 `json:"gate_epoch"`
}

// Terms are the terms of a campaign from a version on.
type Terms struct {
	Name     string      `json:"name"`
	Quantity *int64      `json:"quantity"` // null: unlimited
	OpensAt  *Time       `json:"opens_at"`
	ClosesAt *Time       `json:"closes_at"`
	Answer   string      `json:"answer"`
	Pace     *Pace       `json:"pace"`     // nil if there is no waiting line
	Waitlist bool        `json:"waitlist"` // who waits stays in line when every coupon is in force
	LineLog  bool        `json:"line_log"` // Kafka has a copy of the line, so places survive if Redis loses its data. The server decides this
	Coupon   CouponSpec  `json:"coupon"`
	Prizes   []PrizeSpec `json:"prizes"` // by rank, in order; nil if all coupons are alike
}

// A LedgerState is a campaign's state in the ledger, without coupons that are still on their way there.
type LedgerState struct {
	CampaignID     string  `json:"campaign_id"`
	Gate           string  `json:"gate"`            // the gate that decides: ledger, or redis:INSTANCE
	GateState      string  `json:"gate_state"`      // as in Campaign, by the node that answers
	Epoch          int64   `json:"epoch"`           // of the gate: begins with 1, and grows each time that the gate lost data
	Version        int64   `json:"version"`         // of the last change
	Applied        int64   `json:"applied"`         // version of the last change that the gate has
	InForce        int64   `json:"in_force"`        // coupons
	Recorded       int64   `json:"recorded"`        // coupons, also voided ones
	LastNumber     int64   `json:"last_number"`     // the highest number of a coupon or a dead letter
	Position       int64   `json:"position"`        // of the last fact
	DrainedThrough int64   `json:"drained_through"` // every number up to it is a coupon, a dead letter or lost
	Lost           []Range `json:"lost"`            // numbers that were skipped because the gate lost data
	RetiredAt      *Time   `json:"retired_at"`      // null while the gate keeps the campaign
}

// A Range is the Count numbers from First on.
type Range struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// An Audit is the result of a campaign's audit, of the ledger and of the gate beside it.
type Audit struct {
	CampaignID  string     `json:"campaign_id"`
	Coupons     int64      `json:"coupons"` // in the ledger, also voided ones
	InForce     int64      `json:"in_force"`
	Voided      int64      `json:"voided"`
	Facts       int64      `json:"facts"`
	DeadLetters int64      `json:"dead_letters"` // open dead letters
	Lost        int64      `json:"lost"`         // numbers
	LostTold    int64      `json:"lost_told"`    // the most of them that users can have been told
	LostLines   int64      `json:"lost_lines"`   // generations of the waiting line that the gate lost
	Missing     int64      `json:"missing"`      // numbers on their way to the ledger
	Held        []string   `json:"held"`         // the promises that were checked
	Breaches    Breaches   `json:"breaches"`
	Gate        *GateAudit `json:"gate"` // nil if the ledger decides, or the campaign is retired
}

// A GateAudit is the result of comparing a campaign's gate with the ledger.
type GateAudit struct {
	CampaignID string   `json:"campaign_id"`
	Holders    int64    `json:"holders"`    // users who hold a coupon at the gate
	Unrecorded int64    `json:"unrecorded"` // coupons among them that are on their way to the ledger
	Waiting    int64    `json:"waiting"`    // in line at the gate
	Moving     bool     `json:"moving"`     // the campaign was in use, so its counters were not compared
	Elsewhere  string   `json:"elsewhere"`  // the earlier gate that decided the now closed campaign, so nothing was compared; otherwise empty
	Failed     string   `json:"failed"`     // why the gate could not be read, so nothing was compared; otherwise empty
	Breaches   Breaches `json:"breaches"`
}

// Breaches are the breaches that an audit found.
type Breaches struct {
	Total int64            `json:"total"`
	Count map[string]int64 `json:"count"` // by promise
	Shown []Breach         `json:"shown"` // the first ten of each promise
}

// A Breach is a broken promise.
type Breach struct {
	Promise string `json:"promise"`         // P1 to P10, or what they rest on
	Query   string `json:"query,omitempty"` // of firstcome audit --print-sql; empty if no query found it
	Text    string `json:"text"`
}

// A DeadLetter is a coupon or an entry that the ledger refused. It is open until an operator replays or voids it.
type DeadLetter struct {
	ID         int64   `json:"id"`
	CampaignID *string `json:"campaign_id"` // null if the entry does not have it
	Number     *int64  `json:"number"`      // null if it has no coupon
	UserID     *string `json:"user_id"`
	Source     string  `json:"source"`  // a unique name of the entry
	Payload    string  `json:"payload"` // the coupon as JSON, or the entry as it was found
	Cause      string  `json:"cause"`
	CauseCode  string  `json:"cause_code"` // equal for all letters with the same cause
	CreatedAt  Time    `json:"created_at"`
	ResolvedAt *Time   `json:"resolved_at"` // null while it is open
	ResolvedBy *string `json:"resolved_by"` // replayed or voided
}

// A LogEntry is a line of the audit log: who changed what, from Old to New. Both have only the values that changed, spelled as in the other answers:
// New of a campaign.update is the PATCH that would do the same. Null stands for a value that did not exist before, or no longer does.
type LogEntry struct {
	ID         int64           `json:"id"`
	At         Time            `json:"at"`
	Actor      string          `json:"actor"`      // key:ID, user:SUB, local:USER, or local in development mode
	ActorName  *string         `json:"actor_name"` // of a key
	Action     string          `json:"action"`
	CampaignID *string         `json:"campaign_id"`
	UserID     *string         `json:"user_id"`
	Number     *int64          `json:"number"`
	Old        json.RawMessage `json:"old"`
	New        json.RawMessage `json:"new"`
	Detail     json.RawMessage `json:"detail"` // the given reason, and other details
}

// A List is a page of items. Next, if not nil, is the after of the next page.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// All returns the items of every page. page returns the page after after, which is "" at first.
func All[T any](page func(after string) (List[T], error)) ([]T, error) {
	all := []T{}
	for after := ""; ; {
		one, err := page(after)
		if err != nil {
			return nil, err
		}
		all = append(all, one.Items...)
		if one.Next == nil {
			return all, nil
		}
		after = *one.Next
	}
}

// A Problem is a refusal or an error (RFC 9457). It is the error that calls
// return when the server answered other than 2xx.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Code     string `json:"code"` // what it is, for programs: docs/api.md lists them; for a refused claim the outcome
	Detail   string `json:"detail,omitempty"`
	Outcome  string `json:"outcome,omitempty"` // of a refused claim; or how the place ended that was asked about
	OpensAt  *Time  `json:"opens_at,omitempty"`
	ClosesAt *Time  `json:"closes_at,omitempty"`
	// A refused claim has these: when the campaign opened, when nothing was left for the first time, and when the
	// window ended or an operator closed the campaign.
	OpenedAt  *Time        `json:"opened_at,omitempty"`
	SoldOutAt *Time        `json:"sold_out_at,omitempty"`
	ClosedAt  *Time        `json:"closed_at,omitempty"`
	Coupon    *Coupon      `json:"coupon,omitempty"` // of already_served: the one that the user holds
	Errors    []FieldError `json:"errors,omitempty"` // every mistake of the request
	Lines     []LineError  `json:"lines,omitempty"`  // of an import: the first mistakes of its file
	// RetryAfter is the header of this name: how long to wait before asking again; 0: absent.
	RetryAfter time.Duration `json:"-"`
	// Challenge is the header WWW-Authenticate of a 401.
	Challenge string `json:"-"`
}

// A LineError is one mistake of a file.
type LineError struct {
	Line   int    `json:"line"` // from 1, or 0 for the file as a whole
	Reason string `json:"reason"`
}

// A FieldError is one mistake of a request.
type FieldError struct {
	Field  string `json:"field,omitempty"`  // or parameter, like coupon.valid_for or user_ids[17]; empty: the body as a whole
	Offset int64  `json:"offset,omitempty"` // of a body that is not JSON: the byte, from 1, at which that was found
	Reason string `json:"reason"`
}

// Error returns what the problem is, in one line: all mistakes of the request if it has any, otherwise the detail.
func (p *Problem) Error() string {
	said := make([]string, 0, len(p.Errors)+1)
	for _, e := range p.Errors {
		said = append(said, e.text())
	}
	for _, l := range p.Lines {
		said = append(said, fmt.Sprintf("line %d: %s", l.Line, l.Reason))
	}
	if len(said) == 0 && p.Detail != "" {
		said = append(said, p.Detail)
	}
	if len(said) == 0 {
		return p.Title
	}
	return p.Title + ": " + strings.Join(said, "; ")
}

// text is the mistake with its place.
func (e FieldError) text() string {
	switch {
	case e.Field != "":
		return e.Field + ": " + e.Reason
	case e.Offset != 0:
		return fmt.Sprintf("at byte %d: %s", e.Offset, e.Reason)
	}
	return e.Reason
}
