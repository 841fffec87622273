package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// PowerConfig gives each machine a controller: one HTTP server for all of them, of the kind that Slipway's webhook
// driver speaks to. GET /MAC/power answers {"power":"on"}; POST /MAC/on, /MAC/off and /MAC/cycle change it. PUT
// /MAC/hardware changes what the machine is made of, as a person with a screwdriver does.
type PowerConfig struct {
	Listen    string // address of the HTTP server; "" for no controllers
	Namespace string // network namespace that it listens in; "" for the current one
	// Faults is the chance from 0 to 1 that a call fails in one of three ways: a 503 and nothing happens, a 500 after it
	// has happened, or a 200 and nothing happens.
	Faults float64
	IsOn   bool // machines begin switched on
}

// PowerOptions are the options of a webhook BMC whose system is the machine's MAC.
func PowerOptions() map[string]string {
	return map[string]string{
		"on.path": "/{{.System}}/on", "off.path": "/{{.System}}/off", "cycle.path": "/{{.System}}/cycle",
		"status.path": "/{{.System}}/power", "status.pointer": "/power", "timeout": "5s", "pause": "100ms",
	}
}

// outlet is the power of one machine.
type outlet struct {
	mu      sync.Mutex
	isOn    bool
	changed chan struct{} // closed at each change
	turns   int
	refit   refit
}

func newOutlet(isOn bool) *outlet { return &outlet{isOn: isOn, changed: make(chan struct{})} }

// state returns whether the power is on, and what is closed when that changes.
func (o *outlet) state() (isOn bool, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isOn, o.changed
}

// turn switches; on for a machine that is on changes nothing unless it is a cycle.
func (o *outlet) turn(isOn, isCycle bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isOn == isOn && !isCycle {
		return
	}
	o.isOn = isOn
	o.turns++
	close(o.changed)
	o.changed = make(chan struct{})
}

// controllers serves the outlets of all machines.
type controllers struct {
	byMAC  map[string]*outlet
	faults float64
	mu     sync.Mutex
	dice   *rand.Rand
	stats  *stats
}

// servePower begins to listen; stop ends it.
func servePower(cfg PowerConfig, seed uint64, byMAC map[string]*outlet, stats *stats, log *slog.Logger) (stop func(), err error) {
	c := &controllers{byMAC: byMAC, faults: cfg.Faults, dice: rand.New(rand.NewPCG(seed, 77)), stats: stats}
	ns, err := openNamespace(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	defer ns.close()
	var l net.Listener
	if err := ns.do(func() (err error) { l, err = net.Listen("tcp4", cfg.Listen); return err }); err != nil {
		return nil, fmt.Errorf("listen for orders to controllers: %w", err)
	}
	s := &http.Server{Handler: c, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			log.Warn("controllers stopped answering", "err", err)
		}
	}, nil
}

// ServeHTTP is one order to a controller, or a question.
func (c *controllers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mac, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	o := c.byMAC[mac]
	if o != nil && what == "hardware" && r.Method == http.MethodPut {
		body, err := io.ReadAll(io.LimitReader(r.Body, refitMax))
		if err = errors.Join(err, o.take(body)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		return
	}
	isQuestion := what == "power"
	if o == nil || isQuestion != (r.Method == http.MethodGet) || !isQuestion && r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<16))
	fault := c.fault()
	if fault == 1 || isQuestion && fault == 2 {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	switch {
	case isQuestion:
		isOn, _ := o.state()
		word := "off"
		if isOn {
			word = "on"
		}
		fmt.Fprintf(w, `{"power":%q}`, word)
		return
	case fault == 3:
	case what == "on", what == "off":
		o.turn(what == "on", false)
	case what == "cycle":
		o.turn(true, true)
	default:
		http.NotFound(w, r)
		return
	}
	if fault == 2 {
		http.Error(w, "broke off", http.StatusInternalServerError)
	}
}

// fault draws what goes wrong with a call: 0 for nothing.
func (c *controllers) fault() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults == 0 || c.dice.Float64() >= c.faults {
		return 0
	}
	c.stats.count("controller faults")
	return 1 + c.dice.IntN(3)
}

// refit is what somebody changed in a machine: its parts, over those that it was built with, and its system's name.
type refit struct {
	Hardware json.RawMessage `json:"hardware,omitempty"` // of inventory.Hardware; a list takes the place of the whole list
	Hostname string          `json:"hostname,omitempty"` // that its system asks an address with
}

// refitMax bounds a refit; a report of our agent may be as long.
const refitMax = 1 << 20

// take reads a refit; what is no hardware is refused.
func (o *outlet) take(body []byte) error {
	var r refit
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Hardware != nil {
		if err := json.Unmarshal(r.Hardware, new(inventory.Hardware)); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refit = r
	return nil
}
