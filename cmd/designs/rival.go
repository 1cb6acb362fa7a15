package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	_ "modernc.org/sqlite" // reads the coupons that firstcome has stored on SQLite

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
)

// A rival is a running contestant: its processes, the requests of its users, and the rows in its database.
type rival struct {
	name      string
	processes []*process
	plans     string // the directory of plans for fault points
	// write builds the request of a user to a process, and read parses the answer.
	write func(r *fasthttp.Request, base, user string)
	read  func(status int, body []byte) load.Answer
	// look builds a user's request for the result of an earlier request. It is nil if every answer is final.
	look func(r *fasthttp.Request, base, user string)
	// rows returns the winners whose ids are higher than above, in the order of ids.
	rows func(ctx context.Context, above int64) ([]designs.Row, error)
	// named returns the places that the contestant itself reports as lost. It is nil if the contestant has no such report.
	named func(ctx context.Context) ([]verdict.Places, error)
	shut  []func() error
}

// A process is one process of a rival.
type process struct {
	*exec.Cmd
	base  string // URL
	ended chan struct{}
}

// launch starts a process that serves at address, and waits until it is ready.
func launch(ctx context.Context, cmd *exec.Cmd, address string) (*process, error) {
	var said tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the comparison
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Cmd: cmd, base: "http://" + address, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	api := client.New(p.base, "")
	defer api.CloseIdle()
	late := time.After(time.Minute)
	for {
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s ended: %s", filepath.Base(cmd.Path), said.String())
		case <-late:
			return nil, errors.Join(fmt.Errorf("%s is not ready after a minute: %s", filepath.Base(cmd.Path), said.String()), p.kill())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), p.kill())
		case <-time.After(10 * time.Millisecond):
		}
		if api.Ready(ctx) == nil {
			return p, nil
		}
	}
}

// A tail keeps the end of a process's output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const kept = 2 << 10
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// kill ends the process at once.
func (p *process) kill() error {
	err := syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	<-p.ended
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// cpu returns the processor time of the process, or 0 if the process has ended.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(user+system) * tick
}

// close ends the processes, and calls shut.
func (r *rival) close() (err error) {
	for _, p := range r.processes {
		err = errors.Join(err, p.kill())
	}
	for _, shut := range r.shut {
		err = errors.Join(err, shut())
	}
	return err
}

// A start says how a rival must be started.
type start struct {
	coupon      string
	quantity    int64 // endless for stock that does not run out
	connections int
	faults      bool          // connect through the proxies, and use binaries with fault points, whose plans are in dir
	ahead       time.Duration // by how much the second process's clock is ahead
	haste       int64
	dir         string // a new directory for this run
}

// endless is stock that no run uses up.
const endless = 1 << 40

// binaries are the programs, without and with fault points.
type binaries struct{ designs, firstcome [2]string }

// buildAll builds the programs into a directory.
func buildAll(ctx context.Context, dir string, faults bool) (b binaries, err error) {
	for n, tags := range []string{"", "faultpoints"} {
		if n == 1 && !faults {
			break
		}
		for name, to := range map[string]*string{"designs": &b.designs[n], "firstcome": &b.firstcome[n]} {
			*to = filepath.Join(dir, name+tags)
			cmd := exec.CommandContext(ctx, "go", "build", "-tags="+tags, "-o", *to, "github.com/firstcome/firstcome/cmd/"+name)
			cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
			if err := cmd.Run(); err != nil {
				return b, fmt.Errorf("build %s: %w", name, err)
			}
		}
	}
	return b, nil
}

// restart starts a killed process again, at the same address and with the same arguments.
func (r *rival) restart(ctx context.Context, killed *process) error {
	<-killed.ended
	cmd := exec.Command(killed.Path, killed.Args[1:]...)
	cmd.Env = killed.Env
	again, err := launch(ctx, cmd, strings.TrimPrefix(killed.base, "http://"))
	if err == nil {
		*killed = *again
	}
	return err
}

// environment returns the environment of a rival's process.
func (s start) environment() []string {
	env := services.Environ()
	if s.faults {
		env = append(env, "FAULTPOINT="+s.dir) // see internal/point
	}
	return env
}

// program returns the binary to run: built has one without fault points, and one with them.
func (s start) program(built [2]string) string {
	if s.faults {
		return built[1]
	}
	return built[0]
}

// add starts one more process of the rival, at a free address.
func (r *rival) add(ctx context.Context, s start, command func(address string) *exec.Cmd) error {
	address, err := services.Address()
	if err != nil {
		return err
	}
	cmd := command(address)
	cmd.Env = append(cmd.Env, s.environment()...)
	p, err := launch(ctx, cmd, address)
	if err == nil {
		r.processes = append(r.processes, p)
	}
	return err
}

// urls returns the URLs at which a process finds its servers.
func (s start) urls(h *hosts) (redis, database string) {
	if s.faults {
		return h.redisLink.url, h.databaseLink.url
	}
	return h.redisURL, h.databaseURL
}

// startDesign starts two processes of a design.
func (r *runner) startDesign(ctx context.Context, c designs.Contestant, s start) (on *rival, err error) {
	if err := r.prepare(ctx, s.coupon, s.quantity); err != nil {
		return nil, err
	}
	on = &rival{name: c.Name, plans: s.dir, write: ask(designs.ApplyRoute, fasthttp.MethodPost), look: ask(designs.ResultRoute, fasthttp.MethodGet), read: readDesign}
	one := serve{Name: c.Name, Coupon: s.coupon, Limit: s.quantity, Connections: s.connections, Haste: s.haste}
	one.Redis, one.Database = s.urls(r.hosts)
	if c.Kafka {
		if one.Kafka, err = services.MakeTopic(ctx, r.kafkaURL, fmt.Sprintf("designs-%s-%x", s.coupon, time.Now().UnixNano()), 1, nil); err != nil {
			return nil, err
		}
		on.shut = append(on.shut, func() error { // also after Ctrl-C
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return services.DropTopic(ctx, one.Kafka)
		})
	}
	if c.Open != nil {
		if err := one.prepare(ctx, c); err != nil {
			return nil, errors.Join(err, on.close())
		}
	}
	for n := range time.Duration(2) {
		one.Ahead, one.Origin = n*s.ahead, n*s.ahead*1000
		if err := on.add(ctx, s, func(address string) *exec.Cmd {
			return exec.Command(s.program(r.built.designs), one.arguments(address)...)
		}); err != nil {
			return nil, errors.Join(err, on.close())
		}
	}
	on.rows = func(ctx context.Context, above int64) ([]designs.Row, error) {
		return r.tables.Rows(ctx, s.coupon, above)
	}
	return on, nil
}

// ask returns a function that builds a user's request to a design.
func ask(route, method string) func(r *fasthttp.Request, base, user string) {
	path := strings.TrimSuffix(route, "{user}")
	return func(r *fasthttp.Request, base, user string) {
		r.Header.SetMethod(method)
		r.SetRequestURI(base + path + user)
	}
}

// outcomes maps a design's outcomes to those of the load generator. A duplicate means that the user has asked before, so a request for the result finds
// it. A conflict has no outcome: the user may ask again.
var outcomes = map[designs.Outcome]firstcome.Outcome{
	designs.Issued: firstcome.Issued, designs.SoldOut: firstcome.SoldOut, designs.Queued: firstcome.Waiting, designs.Duplicate: firstcome.AlreadyIssued,
}

// conflict is the trouble of an answer which says that nothing was decided.
const conflict = "conflict"

func readDesign(status int, body []byte) load.Answer {
	var said designs.Answer
	if status != fasthttp.StatusOK || json.Unmarshal(body, &said) != nil {
		return load.Answer{Trouble: fmt.Sprintf("HTTP %d", status)}
	}
	if said.Outcome == designs.Conflict {
		return load.Answer{Trouble: conflict}
	}
	return load.Answer{Outcome: outcomes[said.Outcome], Number: said.Place}
}

// A setUp is a way to start firstcome.
type setUp struct {
	name, about string
	gate        bool // Redis decides
	sqlite      bool
	answer      firstcome.AnswerWhen
	points      []point.Point
}

// setUps are firstcome's contestants.
var setUps = []setUp{
	{"firstcome-sqlite", "firstcome serve, one process on SQLite", false, true, "", []point.Point{point.Decided}},
	{"firstcome-mariadb", "firstcome serve, the database decides", false, false, "", []point.Point{point.Decided}},
	{"firstcome-redis", "firstcome serve, Redis decides, answered when recorded", true, false, firstcome.Recorded, []point.Point{point.Decided, point.Taken, point.Committed}},
	{"firstcome-redis-decided", "firstcome serve, Redis decides, answered when decided", true, false, firstcome.Decided, []point.Point{point.Decided, point.Taken, point.Committed}},
}

// secret is the secret of the coupon codes of firstcome.
const secret = "a secret of comparisons, of 32 bytes and more"

// startFirstcome starts firstcome as a user does, with its defaults, and creates the campaign.
func (r *runner) startFirstcome(ctx context.Context, u setUp, s start) (on *rival, err error) {
	if err := r.empty(ctx); err != nil {
		return nil, err
	}
	on = &rival{name: u.name, plans: s.dir, read: load.ParseAnswer}
	claims := "/v1/campaigns/" + s.coupon + "/claims"
	on.write = func(ask *fasthttp.Request, base, user string) {
		ask.Header.SetMethod(fasthttp.MethodPost)
		ask.Header.SetContentType("application/json")
		ask.SetRequestURI(base + claims)
		ask.SetBodyString(`{"user_id":"` + user + `"}`)
	}
	redis, ledger := s.urls(r.hosts)
	direct := r.databaseURL
	if u.sqlite {
		direct = filepath.Join(s.dir, "firstcome.db")
		ledger = "sqlite:" + direct
	}
	processes := 2
	if u.sqlite {
		processes = 1 // one process locks the SQLite file
	}
	command := func(address string) *exec.Cmd {
		cmd := exec.Command(s.program(r.built.firstcome), "serve", "--listen", address, "--ops", "off", "--log-level", "error", "--ledger", ledger)
		if u.gate {
			cmd.Args = append(cmd.Args, "--gate", redis)
		}
		cmd.Env = []string{"FIRSTCOME_SECRET=" + secret}
		return cmd
	}
	for range processes {
		if err := on.add(ctx, s, command); err != nil {
			return nil, errors.Join(err, on.close())
		}
	}
	quantity := &s.quantity
	if s.quantity == endless {
		quantity = nil
	}
	api := client.New(on.processes[0].base, "")
	defer api.CloseIdle()
	if _, err := api.CreateCampaign(ctx, client.NewCampaign{ID: s.coupon, Name: u.name, Quantity: quantity, Answer: string(u.answer)}); err != nil {
		return nil, errors.Join(err, on.close())
	}
	db, err := services.Open(direct)
	if err != nil {
		return nil, errors.Join(err, on.close())
	}
	on.shut = append(on.shut, db.Close)
	on.named = func(ctx context.Context) ([]verdict.Places, error) {
		return u.audited(ctx, r.built.firstcome[0], db, ledger, redis, s.coupon)
	}
	on.rows = func(ctx context.Context, above int64) (rows []designs.Row, err error) {
		found, err := db.QueryContext(ctx, fmt.Sprintf("SELECT number, user_id FROM coupons WHERE campaign_id = '%s' AND number > %d ORDER BY number", s.coupon, above))
		if err != nil {
			return nil, err
		}
		defer found.Close()
		for found.Next() {
			var row designs.Row
			if err := found.Scan(&row.ID, &row.User); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		return rows, found.Err()
	}
	return on, nil
}
