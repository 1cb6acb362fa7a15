package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// secret makes the codes of the fleets' coupons.
const secret = "a secret of benchmarks, of 32 bytes and more"

// arguments are those of a server beside its own: as large as its authors deliver it
// where the tests' are small, and as many connections as the reference needs.
var arguments = map[services.Kind][]string{
	services.MariaDB:    {"--innodb-log-file-size=96M", "--innodb-buffer-pool-size=128M"},
	services.PostgreSQL: {"-c", "shared_buffers=128MB", "-c", "max_connections=400"},
}

// Hosts are servers of a row: durable ones, as for production. Close them.
type hosts struct{ servers []*services.Server }

// database starts a server and returns the URL of a database.
func (h *hosts) database(ctx context.Context, kind services.Kind) string {
	s := value(kind.Start(ctx, arguments[kind]...))
	h.servers = append(h.servers, s)
	return value(s.Database(ctx))
}

// fleet starts Redis and a database server, and returns the arguments of their nodes.
func (h *hosts) fleet(ctx context.Context, kind services.Kind) []string {
	return []string{"--ledger", h.database(ctx, kind), "--gate", h.database(ctx, services.Redis)}
}

func (h *hosts) close() {
	for _, s := range h.servers {
		_ = s.Close() // which only leaves its directory behind
	}
}

// node starts a node of a fleet.
func (b *bench) node(ctx context.Context, args ...string) *server {
	return b.serve(ctx, []string{"FIRSTCOME_SECRET=" + secret}, args...)
}

// Parts are those of a node that decide and record, in this process.
type parts struct {
	gate   *redis.Redis
	ledger *ledger.Ledger
	stop   context.CancelFunc
	runs   errgroup.Group
}

// parts opens a gate and a ledger.
func (b *bench) parts(ctx context.Context, gate, keeps string) *parts {
	key := value(firstcome.NewSecret([]byte(secret)))
	p := &parts{}
	options := redis.Options{
		URL: gate, Secret: key, Backlog: -1,
		Ledger: func() string { return p.ledger.Identity() }, CampaignUID: p.campaignUID,
	}
	p.gate = value(redis.Open(ctx, options))
	p.ledger = value(ledger.Open(ctx, keeps, ledger.Options{Secret: key, Gate: p.gate.Name()}))
	ctx, p.stop = context.WithCancel(ctx)
	p.runs.Go(func() error { return p.ledger.Run(ctx) })
	return p
}

func (p *parts) campaignUID(ctx context.Context, id firstcome.CampaignID) (string, error) {
	c, err := p.ledger.Reads.Campaign(ctx, id)
	return c.CampaignUID, err
}

func (p *parts) close() {
	p.stop()
	_ = p.runs.Wait()
	p.gate.Close()
	_ = p.ledger.Close()
}

// create makes an unlimited campaign.
func (p *parts) create(ctx context.Context, id firstcome.CampaignID) {
	must(p.ledger.Campaigns.Create(ctx, "bench", id, firstcome.Terms{Name: "bench", Quantity: firstcome.Unlimited, Answer: firstcome.Decided, Benefit: []byte(`{"percent":20}`)}))
	must(gate.NewChanger(p.ledger.Campaigns, p.gate.Gate, nil).Finish(ctx, id, 1))
}

// record records what the gate has issued of a campaign until all is drained, straight from the gate's journal, or by way of a topic. It returns
// how long it took, and how many coupons a transaction had.
func (p *parts) record(ctx context.Context, id firstcome.CampaignID, by *kafka.Journal) (took time.Duration, batch float64) {
	state := value(p.gate.Gate.State(ctx, id))
	running, stop := context.WithCancel(ctx)
	defer stop()
	journal := p.gate.Journal.Consumer(redis.ConsumerOptions{Active: p.ledger.Recorder.Active, Relay: by != nil})
	recorder := record.NewRecorder(journal, p.ledger.Recorder, record.Options{})
	runs := []*record.Recorder{recorder}
	if by != nil {
		recorder = record.NewRecorder(by, p.ledger.Recorder, record.Options{})
		runs = []*record.Recorder{recorder, record.NewRecorder(journal, by, record.Options{})}
	}
	began := time.Now()
	var run errgroup.Group
	for _, r := range runs {
		run.Go(func() error { return r.Run(running) })
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := state.LastNumber; state.DrainedThrough < end; state = value(p.gate.Gate.State(ctx, id)) {
		<-tick.C
	}
	took = time.Since(began)
	stop()
	must(run.Wait())
	s := recorder.Stats()
	return took, float64(s.Coupons) / float64(max(s.Batches, 1))
}
