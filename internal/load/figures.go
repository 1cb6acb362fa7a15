package load

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// figures computes the result from the workers' records, without the verdict.
func figures(c Options, start time.Time, byWorker [][]record) *Result {
	r := &Result{
		Load: Load{
			Loop: "closed", Users: c.Users, Repeat: c.Repeat, Concurrency: c.Concurrency,
			Rate: c.Rate, Duration: c.Duration.Seconds(), Prefix: c.Prefix, Shuffle: c.Shuffle, Seed: c.Seed,
			Follow: c.Follow, Leave: c.Leave, CDN: c.CDN,
		},
		Started: start.UTC(), Outcomes: map[string]int64{}, Trouble: map[string]int64{}, LatencyOf: map[string]Latency{},
	}
	if c.Rate > 0 {
		r.Load.Loop = "open"
	}
	records := slices.Concat(byWorker...)
	slices.SortFunc(records, func(x, y record) int { return cmp.Compare(x.received, y.received) })
	r.Claims = int64(len(records))
	if len(records) > 0 {
		end := records[len(records)-1].received
		r.Seconds = end.Seconds()
		r.Series = series(records, end)
	}
	r.measure(records)
	if r.Seconds > 0 {
		r.PerSecond = float64(r.Claims-r.Outcomes[unknown]) / r.Seconds
	}
	r.issued = issued(records)
	r.Numbers, r.SoldOut = numbers(r.issued), soldOut(records)
	r.history = history(c, records)
	return r
}

// word returns the word for a record's outcome.
func word(o firstcome.Outcome) string {
	if o == 0 {
		return unknown
	}
	return o.String()
}

// measure counts the records and their latencies.
func (r *Result) measure(records []record) {
	all, lag := histogram(), histogram()
	of := map[firstcome.Outcome]*hdrhistogram.Histogram{}
	for n := range records {
		c := &records[n]
		one := of[c.answer.Outcome]
		if one == nil {
			one = histogram()
			of[c.answer.Outcome] = one
		}
		add(all, c.received-c.due)
		add(one, c.received-c.due)
		add(lag, c.sent-c.due)
		if c.answer.Outcome == 0 {
			r.Trouble[c.answer.Trouble]++
		}
	}
	r.Latency, r.Lag = latency(all), latency(lag)
	for o, h := range of {
		r.Outcomes[word(o)] = h.TotalCount()
		r.LatencyOf[word(o)] = latency(h)
	}
}

// longest is the longest latency that a histogram distinguishes from longer ones.
const longest = time.Hour

// histogram returns a histogram of microseconds with three significant digits.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 3)
}

func add(h *hdrhistogram.Histogram, d time.Duration) {
	// Within its bounds RecordValue does not fail.
	_ = h.RecordValue(min(max(d, 0), longest).Microseconds())
}

func latency(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(quantile float64) float64 { return float64(h.ValueAtQuantile(quantile)) / 1000 }
	return Latency{
		Count: h.TotalCount(), Mean: math.Round(h.Mean()) / 1000,
		P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000,
	}
}

// interval returns the interval of a run's series: at most about 600 intervals, and enough that a short run shows its shape.
func interval(run time.Duration) time.Duration {
	switch {
	case run <= time.Second:
		return 10 * time.Millisecond
	case run <= 10*time.Second:
		return 20 * time.Millisecond
	case run <= time.Minute:
		return 100 * time.Millisecond
	case run <= 10*time.Minute:
		return time.Second
	}
	return max(10*time.Second, (run / 600).Truncate(time.Second))
}

// series computes the time series of records, in the order of their receipt, until end.
func series(records []record, end time.Duration) Series {
	width := interval(end)
	s := Series{Interval: width.Seconds(), PerSecond: map[string][]float64{}}
	count := max(1, int(end/width))
	for n, from := 0, 0; n < count; n++ {
		begin, lasted := time.Duration(n)*width, width
		if n == count-1 {
			// The last interval extends to the end of the run. Otherwise a part of an interval would have to be scaled up to a rate, which would be
			// mostly noise.
			lasted = max(end-begin, width)
		}
		to := from
		for to < len(records) && (n == count-1 || records[to].received < begin+width) {
			to++
		}
		s.At = append(s.At, begin.Seconds())
		s.rates(n, count, records[from:to], lasted)
		s.percentiles(records[from:to])
		from = to
	}
	return s
}

// rates adds the outcomes of interval n of count.
func (s *Series) rates(n, count int, records []record, lasted time.Duration) {
	for i := range records {
		name := word(records[i].answer.Outcome)
		if s.PerSecond[name] == nil {
			s.PerSecond[name] = make([]float64, count)
		}
		s.PerSecond[name][n] += 1 / lasted.Seconds()
	}
	for _, rates := range s.PerSecond {
		rates[n] = math.Round(rates[n]*10) / 10
	}
}

// percentiles adds the latencies of an interval.
func (s *Series) percentiles(records []record) {
	if len(records) == 0 {
		s.P50, s.P95, s.P99 = append(s.P50, nil), append(s.P95, nil), append(s.P99, nil)
		return
	}
	took := make([]time.Duration, len(records))
	for n := range records {
		took[n] = records[n].received - records[n].due
	}
	slices.Sort(took)
	at := func(share float64) *float64 {
		rank := int(math.Ceil(share*float64(len(took)))) - 1
		ms := float64(took[max(rank, 0)].Microseconds()) / 1000
		return &ms
	}
	s.P50, s.P95, s.P99 = append(s.P50, at(0.50)), append(s.P95, at(0.95)), append(s.P99, at(0.99))
}

// soldOut returns how many seconds into the run the last coupon was answered before a claim was refused as sold out. It is nil if no claim was, or if
// there was no stock from the start.
func soldOut(records []record) *float64 {
	refused := slices.IndexFunc(records, func(r record) bool { return r.answer.Outcome == firstcome.SoldOut })
	if refused < 0 {
		return nil
	}
	var last *float64
	for n := range records {
		// A claim that was sent before the refusal was received may be answered after it.
		if r := &records[n]; r.answer.Outcome == firstcome.Issued && r.sent <= records[refused].received {
			at := r.received.Seconds()
			last = &at
		}
	}
	return last
}

// maxNumbers is the most numbers shown: more than a chart has columns.
const maxNumbers = 2000

// issued returns the answers with new coupons and their times of issue.
func issued(records []record) []Answer {
	var all []Answer
	for n := range records {
		if a := &records[n].answer; a.Outcome == firstcome.Issued && a.IssuedAt != 0 {
			all = append(all, *a)
		}
	}
	return all
}

// numbers returns an even selection of issued coupons, in the order of their issue.
func numbers(issued []Answer) []Number {
	slices.SortFunc(issued, func(x, y Answer) int {
		return cmp.Or(cmp.Compare(x.IssuedAt, y.IssuedAt), cmp.Compare(x.Number, y.Number))
	})
	all := make([]Number, len(issued))
	for n, a := range issued {
		all[n] = Number{At: float64(a.IssuedAt-issued[0].IssuedAt) / 1e6, Number: a.Number}
	}
	return evenly(all, maxNumbers)
}

// history returns every attempt in the audit's form.
func history(c Options, records []record) []audit.Claim {
	users := make([]firstcome.UserID, c.Users)
	claims := make([]audit.Claim, len(records))
	for n := range records {
		r := &records[n]
		if users[r.user] == "" {
			users[r.user] = firstcome.UserID(userID(c.Prefix, int(r.user)))
		}
		claims[n] = audit.Claim{
			User: users[r.user], Sent: r.sent, Received: r.received,
			Outcome: r.answer.Outcome, Number: r.answer.Number, Code: r.answer.Code, Recorded: r.answer.Recorded,
			Ranked: audit.Ranked{Rank: r.answer.Rank, Prize: r.answer.Prize},
		}
		if p := r.answer.Place; p != nil {
			claims[n].Generation, claims[n].Ticket = p.Generation, p.Ticket
		}
	}
	return claims
}
