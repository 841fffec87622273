package attack_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// outlet is a machine's power behind HTTP. It keeps the answers to one server back while that is held.
type outlet struct {
	mu     sync.Mutex
	isOn   bool
	orders []string // with the source of each

	held  string // a source
	asked chan struct{}
	free  chan struct{}
}

func (o *outlet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	o.mu.Lock()
	isHeld := from == o.held && r.Method == http.MethodGet
	o.mu.Unlock()
	if isHeld {
		select {
		case o.asked <- struct{}{}:
		default:
		}
		<-o.free
		_, _ = io.WriteString(w, `{"power":"off"}`)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Method == http.MethodPost {
		if r.URL.Path == "/on" || r.URL.Path == "/off" {
			o.isOn = r.URL.Path == "/on"
		}
		o.orders = append(o.orders, from+" "+r.URL.Path)
		return
	}
	fmt.Fprintf(w, `{"power":%q}`, map[bool]string{true: "on", false: "off"}[o.isOn])
}

func (o *outlet) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.orders, ", ")
}

// TestPostgreSQLAPausedLeaderChangesNothing pauses the server with the engine until another one has taken over. It wakes up in the middle
// of an order to a controller, with requests that have waited for it.
func TestPostgreSQLAPausedLeaderChangesNothing(t *testing.T) {
	all := victims(t, both)
	a, b := all[0], all[1]
	ctx := t.Context()
	o := &outlet{held: "10.77.0.1", asked: make(chan struct{}, 1), free: make(chan struct{})}
	var l net.Listener
	a.Lab.Inside(a.Net.Client, func() (err error) { l, err = net.Listen("tcp", attacker+":9000"); return err })
	s := &http.Server{Handler: o}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	boots(a, 5)
	h := a.Hosts()[0]
	if _, err := a.API.Hosts.Accept(ctx, h.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.Hosts.SetBMC(ctx, h.Name, client.SetBMC{
		Driver: inventory.Webhook, Address: "http://" + attacker + ":9000",
		Options: map[string]string{
			"on.path": "/on", "off.path": "/off", "boot.path": "/boot/{{.Device}}", "status.path": "/power", "status.pointer": "/power",
			"timeout": "1m",
		},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.Hosts.Power(ctx, h.Name, "on"); err != nil {
		t.Fatal(err)
	}
	<-o.asked
	if err := a.Process.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	close(o.free) // the answer waits in the socket of a
	b.Process.WaitFor("API on", 1)
	o.awaits(t, "10.77.0.2 /on")
	for until := time.Now().Add(2 * requestLimit); ; time.Sleep(100 * time.Millisecond) { // until that has been confirmed
		_, err := b.API.Hosts.Power(ctx, h.Name, "off")
		if err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	o.awaits(t, "10.77.0.2 /on, 10.77.0.2 /off")

	answers := map[string]chan string{}
	for path, body := range map[string]string{"/power": `{"action":"on"}`, "/bmc/boot": `{"device":"disk"}`} {
		answers[path] = make(chan string, 1)
		go func() {
			out, _ := a.Lab.Try(2*requestLimit, "ip", "netns", "exec", a.Net.Server, "curl", "-s", "-m", "15", "-w", " %{http_code}",
				"-H", "Content-Type: application/json", "-d", body, "--unix-socket", filepath.Join(a.Data, "slipway.sock"),
				"http://slipway/api/v1/hosts/"+h.Name+path)
			answers[path] <- out
		}()
	}
	time.Sleep(time.Second) // until they wait
	if err := a.Process.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for path, said := range answers {
		if is := <-said; strings.HasSuffix(is, " 200") || strings.HasSuffix(is, " 201") || strings.HasSuffix(is, " 202") {
			t.Errorf("%s was done by a server that had lost the engine: %s", path, is)
		}
	}
	select {
	case err := <-a.Process.Done:
		a.Process.Done <- err
	case <-time.After(requestLimit):
		t.Error("the paused server goes on")
	}
	if said := o.said(); said != "10.77.0.2 /on, 10.77.0.2 /off" {
		t.Errorf("the machine was given these orders: %s", said)
	}
	boots(b, 6)
}

// awaits waits until the outlet has had these orders.
func (o *outlet) awaits(t *testing.T, want string) {
	t.Helper()
	for until := time.Now().Add(2 * requestLimit); o.said() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("orders: %s, want %s", o.said(), want)
		}
	}
}

// forget drops the orders that were given.
func (o *outlet) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders = nil
}
