package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Time is an instant on the wire: RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

// timeLayout always has six digits, so that texts sort as instants do.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// MarshalJSON returns the instant as text.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeLayout+`"`), nil
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

// NewCampaign is what makes a campaign. Absent values take their defaults.
type NewCampaign struct {
	ID       string     `json:"id,omitempty"` // absent: the server makes one
	Name     string     `json:"name"`
	Quantity *int64     `json:"quantity"` // nil: unlimited
	OpensAt  *Time      `json:"opens_at,omitempty"`
	ClosesAt *Time      `json:"closes_at,omitempty"`
	Answer   string     `json:"answer,omitempty"` // recorded (default) or decided
	Pace     *Pace      `json:"pace,omitempty"`   // nil: there is no waiting line
	Waitlist bool       `json:"waitlist,omitempty"`
	Coupon   CouponSpec `json:"coupon"`
}

// A Pace is how fast a campaign's waiting line is served.
type Pace struct {
	PerSecond *int64 `json:"per_second"` // coupons a second; nil: as fast as the gate takes them
}

// A CouponSpec says what a campaign's coupons are good for, and how long.
type CouponSpec struct {
	Benefit    json.RawMessage `json:"benefit"`
	ValidUntil *Time           `json:"valid_until"`
	ValidFor   *Duration       `json:"valid_for"`
}

// A Campaign is a campaign's terms and counters at ServerTime.
type Campaign struct {
	ID string `json:"id"`
	Terms
	Version int64  `json:"version"`
	State   string `json:"state"` // not_open, open, paused, sold_out, closed or unknown
	// GateState is ok, or says why nobody knows what the gate has, and why claims are answered 503: the gate has
	// lost the campaign (lost), it is not verified yet (unverified), it is another gate, secret or ledger (mismatch), the ledger
	// is older than the gate (ahead), the gate is in an epoch that has ended (behind), or it did not answer (unknown).
	GateState string `json:"gate_state"`
	Waiting   *int64 `json:"waiting"`   // people in line; nil: unknown
	InForce   *int64 `json:"in_force"`  // nil: unknown, as GateState is not ok
	Issued    *int64 `json:"issued"`    // likewise
	Recorded  int64  `json:"recorded"`  // how many of them the ledger has
	Remaining *int64 `json:"remaining"` // nil: unlimited, or unknown as InForce is
	// By the gate's clock, and nil until it happens, or while GateState is not ok.
	OpenedAt   *Time `json:"opened_at"`   // the first decision while it was open
	SoldOutAt  *Time `json:"sold_out_at"` // when nothing was left for the first time
	ClosedAt   *Time `json:"closed_at"`   // when an operator closed it
	CreatedAt  Time  `json:"created_at"`
	ServerTime Time  `json:"server_time"`
}

// A Coupon is the fact that a user was issued a number.
type Coupon struct {
	CampaignID string          `json:"campaign_id"`
	Number     int64           `json:"number"`
	UserID     string          `json:"user_id"`
	Code       string          `json:"code"`
	State      string          `json:"state"` // in_force or voided
	Benefit    json.RawMessage `json:"benefit"`
	IssuedAt   Time            `json:"issued_at"`
	ExpiresAt  *Time           `json:"expires_at"`
	Recorded   bool            `json:"recorded"`
	// Generation and Ticket are the place in the waiting line that it was issued to; nil: it was issued without a line.
	Generation *int64 `json:"generation"`
	Ticket     *int64 `json:"ticket"`
	Direct     bool   `json:"direct,omitempty"` // it was issued directly, so perhaps before the opening or in a pause
}

// An Answer is what a claim got: a coupon, a place in line, or a refusal.
type Answer struct {
	Outcome string  `json:"outcome"` // a word that firstcome.ParseOutcome knows
	Coupon  *Coupon `json:"coupon"`  // nil for a refusal, and in line
	*Place          // nil unless the outcome is waiting
	// Refusal is what the server said when it refused a single claim: when the
	// campaign opens, and when to ask again. Nil if there is a coupon.
	Refusal *Problem `json:"-"`
}

// A Place is where somebody stands in a campaign's waiting line.
type Place struct {
	Ticket     int64 `json:"ticket"` // in the order of the claims, from 1 in each generation
	Generation int64 `json:"generation"`
	// Ahead is how many tickets are before this one, at most: those whose users left count until their turn.
	Ahead      int64  `json:"ahead"`
	ETASeconds *int64 `json:"eta_seconds"` // until it is this ticket's turn; nil: unknown
	// Likely reports whether there will be a coupon if nothing changes: as many are left, and the campaign does not close before.
	Likely  bool    `json:"likely"`
	Serving bool    `json:"serving"` // the line is served now
	Reason  *string `json:"reason"`  // why it is not, not_open or paused
	Until   *Time   `json:"until"`   // and until when, if that is known
	// ClosesAt is when whoever is in line still is sent away; nil: not at a known time.
	ClosesAt *Time `json:"closes_at"`
	// PollAfter is after how many seconds to look at the campaign's line again: see Client.Follow.
	PollAfter float64 `json:"poll_after"`
}

// A Line is a campaign's waiting line, as everybody may read it.
type Line struct {
	CampaignID string `json:"campaign_id"`
	Generation int64  `json:"generation"`  // one more each time that everybody in line was sent away
	Serving    int64  `json:"serving"`     // the ticket that is served next; every one before it has ended
	LastTicket int64  `json:"last_ticket"` // the one given last in this generation; 0: none
	Waiting    int64  `json:"waiting"`     // people in line
	// LikelyThrough is the last ticket for which there will be a coupon if nothing changes. Nil if there is no such limit.
	LikelyThrough *int64      `json:"likely_through"`
	NextJoinedAt  *Time       `json:"next_joined_at"` // when the user who is next in line joined; nil if nobody is in line, or nobody says
	Pace          *Pace       `json:"pace"`
	Waitlist      bool        `json:"waitlist"` // who waits stays in line when every coupon is in force
	State         string      `json:"state"`    // as of a Campaign
	Ended         []EndedLine `json:"ended"`    // the last generations that ended, the latest first
	ServerTime    Time        `json:"server_time"`
}

// An EndedLine is a generation of a line that ended: who was still in it was sent away.
type EndedLine struct {
	Generation       int64  `json:"generation"`
	Reason           string `json:"reason"` // the outcome of those who were sent away, sold_out or closed; or lost, by Redis
	EndedAt          Time   `json:"ended_at"`
	LastTicketServed int64  `json:"last_ticket_served"` // every ticket up to it had ended before
}

// A Fact is one thing that happened to a coupon. If the ledger has lost the coupon, which is a breach that people
// must look at, what follows Number is null on the wire and zero here.
type Fact struct {
	Position     int64  `json:"position"`
	Kind         string `json:"kind"` // coupon.issued or coupon.voided
	CampaignID   string `json:"campaign_id"`
	Number       int64  `json:"number"`
	UserID       string `json:"user_id"`
	Code         string `json:"code"`
	TermsVersion int64  `json:"terms_version"` // the change that holds the terms it was issued under
	At           Time   `json:"at"`            // issued or voided at
	Generation   *int64 `json:"generation"`    // and Ticket: as of Coupon
	Ticket       *int64 `json:"ticket"`
	Direct       bool   `json:"direct,omitempty"`
}

// A Change is a numbered change of a campaign.
type Change struct {
	Version int64   `json:"version"` // from 1, which made the campaign
	Kind    string  `json:"kind"`    // terms, pause, resume, close, void, rebuild or reconcile
	At      Time    `json:"at"`
	Refused bool    `json:"refused"`          // the version is used up and nothing changed
	Terms   *Terms  `json:"terms"`            // of terms and reconcile: all of them, as they were from then on
	Number  *int64  `json:"number"`           // of void
	UserID  *string `json:"user_id"`          // of void: who held the number
	Paused  bool    `json:"paused,omitempty"` // of reconcile: what the gate was; and Closed
	Closed  bool    `json:"closed,omitempty"`
}

// Rebuilt is what a rebuild of a campaign's gate came to.
type Rebuilt struct {
	Epoch int64 `json:"epoch"` // that began
	// Lost is how many numbers may have been given, and are lost. Not all of them need have been coupons. At most so many users were
	// answered with one, with recorded false; where claims are answered when their coupons are recorded, nobody was.
	Lost       int64 `json:"lost"`
	Carried    int64 `json:"carried"`     // people in line who kept their places
	LostPlaces int64 `json:"lost_places"` // at least this many others were in line, and may join again
}

// Reconciled is what a reconcile of a campaign came to, whose ledger was restored from a backup.
type Reconciled struct {
	Rebuilt
	Recovered   int64 `json:"recovered"`    // coupons that the ledger has again
	DeadLetters int64 `json:"dead_letters"` // coupons that it refused
	Voided      int64 `json:"voided"`       // coupons that the gate does not have any more, and that are void in the ledger from now on
	// Unexplained coupons are in force in the ledger, and the gate does not have them: the versions that the ledger has forgotten are too few
	// to have voided all of them.
	Unexplained   int64 `json:"unexplained"`
	LedgerVersion int64 `json:"ledger_version"` // before
	GateVersion   int64 `json:"gate_version"`   // before
	// FactsFrom is the position from which on the campaign's facts may be others than those that were read before: whoever follows them
	// begins again there. 0: that is not known any more, so they begin with the first.
	FactsFrom int64 `json:"facts_from"`
	// Followers bring facts elsewhere, like kafka/TOPIC, and have stopped with those of the campaign until they are replayed.
	Followers []string `json:"followers"`
}

// Estimate is what a reconcile of a campaign would come to, about.
type Estimate struct {
	CampaignID string `json:"campaign_id"`
	Recovered  int64  `json:"recovered"` // coupons that the gate has and the ledger lacks
	Voided     int64  `json:"voided"`    // coupons that are in force in the ledger, and that the gate gave and does not have any more
	// Unexplained coupons are those, where they are more than the forgotten changes can have voided: they would stay in force.
	Unexplained   int64 `json:"unexplained"`
	LedgerVersion int64 `json:"ledger_version"`
	GateVersion   int64 `json:"gate_version"`
	LedgerEpoch   int64 `json:"ledger_epoch"`
	GateEpoch     int64 `json:"gate_epoch"`
}

// Terms are what a campaign promises from a version on.
type Terms struct {
	Name     string     `json:"name"`
	Quantity *int64     `json:"quantity"` // null: unlimited
	OpensAt  *Time      `json:"opens_at"`
	ClosesAt *Time      `json:"closes_at"`
	Answer   string     `json:"answer"`
	Pace     *Pace      `json:"pace"`     // nil: there is no waiting line
	Waitlist bool       `json:"waitlist"` // who waits stays in line when every coupon is in force
	LineLog  bool       `json:"line_log"` // Kafka has a copy of the line, so places survive when Redis loses its memory. The server chooses it
	Coupon   CouponSpec `json:"coupon"`
}

// A LedgerState is what the ledger has of a campaign, without what is still on its way there.
type LedgerState struct {
	CampaignID     string  `json:"campaign_id"`
	Gate           string  `json:"gate"`            // what decides: ledger, or redis:INSTANCE
	GateState      string  `json:"gate_state"`      // a Campaign's, by the node that answers
	Epoch          int64   `json:"epoch"`           // of the gate: from 1, one more each time that it lost something
	Version        int64   `json:"version"`         // of the last change
	Applied        int64   `json:"applied"`         // the last change that the gate has
	InForce        int64   `json:"in_force"`        // coupons
	Recorded       int64   `json:"recorded"`        // coupons, voided ones too
	LastNumber     int64   `json:"last_number"`     // the highest of a coupon or a dead letter
	Position       int64   `json:"position"`        // of the last fact
	DrainedThrough int64   `json:"drained_through"` // every number up to it is a coupon, a dead letter or lost
	Lost           []Range `json:"lost"`            // numbers that were skipped because the gate lost its memory
	RetiredAt      *Time   `json:"retired_at"`      // null: the gate knows the campaign
}

// A Range is Count numbers from First on.
type Range struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// An Audit is what the audit of a campaign found in the ledger, and at the gate beside it.
type Audit struct {
	CampaignID  string     `json:"campaign_id"`
	Coupons     int64      `json:"coupons"` // in the ledger, voided ones too
	InForce     int64      `json:"in_force"`
	Voided      int64      `json:"voided"`
	Facts       int64      `json:"facts"`
	DeadLetters int64      `json:"dead_letters"` // open ones
	Lost        int64      `json:"lost"`         // numbers
	LostTold    int64      `json:"lost_told"`    // at most so many of them were told
	LostLines   int64      `json:"lost_lines"`   // generations of the waiting line that the gate lost
	Missing     int64      `json:"missing"`      // numbers on their way to the ledger
	Held        []string   `json:"held"`         // the promises that were checked
	Breaches    Breaches   `json:"breaches"`
	Gate        *GateAudit `json:"gate"` // nil: the ledger decides, or the campaign is long over
}

// A GateAudit is what the comparison of a campaign's gate with the ledger found.
type GateAudit struct {
	CampaignID string   `json:"campaign_id"`
	Holders    int64    `json:"holders"`    // of a coupon at the gate
	Unrecorded int64    `json:"unrecorded"` // of them, on their way to the ledger
	Waiting    int64    `json:"waiting"`    // in line at the gate
	Moving     bool     `json:"moving"`     // it was in use, so its counters were not compared
	Elsewhere  string   `json:"elsewhere"`  // the earlier gate that decided the campaign, which is closed, so nothing was compared; else empty
	Failed     string   `json:"failed"`     // why the gate could not be asked, so nothing was compared; else empty
	Breaches   Breaches `json:"breaches"`
}

// Breaches are the promises that an audit found broken.
type Breaches struct {
	Total int64            `json:"total"`
	Count map[string]int64 `json:"count"` // by promise
	Shown []Breach         `json:"shown"` // the first ten of each promise
}

// A Breach is a promise broken, and how.
type Breach struct {
	Promise string `json:"promise"`         // P1 to P9, or what they rest on
	Query   string `json:"query,omitempty"` // of firstcome audit --print-sql; empty if no query found it
	Text    string `json:"text"`
}

// A DeadLetter is what the ledger would not take, until an operator replays or voids it.
type DeadLetter struct {
	ID         int64   `json:"id"`
	CampaignID *string `json:"campaign_id"` // null: the entry does not say
	Number     *int64  `json:"number"`      // null: there is no coupon in it
	UserID     *string `json:"user_id"`
	Source     string  `json:"source"`  // names the entry
	Payload    string  `json:"payload"` // the coupon as JSON, or the entry as it was found
	Cause      string  `json:"cause"`
	CauseCode  string  `json:"cause_code"` // the same for all letters of a cause
	CreatedAt  Time    `json:"created_at"`
	ResolvedAt *Time   `json:"resolved_at"` // null while it is open
	ResolvedBy *string `json:"resolved_by"` // replayed or voided
}

// A LogEntry is a line of the audit log: who changed what, from Old to New. Both have only what
// changed, spelled as in the other answers: New of a campaign.update is the PATCH that would do the
// same. Null stands for what was not there before, or no longer is.
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
	Detail     json.RawMessage `json:"detail"` // the reason that was given, and what else there is to say
}

// A List is a page of items. Next, if not nil, is what to ask the next page after.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// All returns the items of every page: page returns the page behind after, which is "" at first.
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
	// RetryAfter is the header of this name: how long to wait before asking again; 0: absent.
	RetryAfter time.Duration `json:"-"`
	// Challenge is the header WWW-Authenticate of a 401.
	Challenge string `json:"-"`
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
