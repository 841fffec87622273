package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

func TestThePasswordOfAControllerNeverComesBack(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const canary = "kanarienvogel-7261"
	header := "Bearer " + canary
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a","username":"admin","password":"`+canary+`"}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/r2-u01/bmc", `{"driver":"webhook","address":"http://127.0.0.1:1","password":"`+canary+`",
		"options":{"on.path":"/on","header.X-Key":"`+header+`"}}`)
	r.must(202, nil, "POST", "/api/v1/hosts/r1-u01/bmc/rotate", "")
	b := r.bmcOf("r1-u01")
	if plain, err := r.box.Open("bmc/"+string(b.HostID), b.Sealed); err != nil || string(plain) != canary {
		t.Fatalf("the password is not stored as it should be: %v", err)
	}
	var said strings.Builder
	for _, op := range r.operations() {
		path := strings.Replace(strings.Replace(op[1], "/hosts/x", "/hosts/r1-u01", 1), "{", "x", 1)
		if op[0] == "GET" && !strings.HasSuffix(path, "/events") && !strings.HasSuffix(path, "/imports/x") {
			said.WriteString(r.ask("GET", path, "").body)
			said.WriteString(r.ask("GET", strings.Replace(path, "r1-u01", "r2-u01", 1), "").body)
		}
	}
	said.WriteString(r.ask("GET", "/api/v1/events?limit=1000", "").body)
	said.WriteString(r.ask("PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","password":"`+canary+`","options":{"power":7}}`).body)
	said.WriteString(r.ask("PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"nope","password":"`+canary+`"}`).body)
	said.WriteString(r.ask("DELETE", "/api/v1/hosts/r1-u01/bmc?dryRun=true", "").body)
	said.WriteString(r.logged())
	if all := said.String(); strings.Contains(all, canary) || strings.Contains(all, "sealed") {
		i := max(strings.Index(all, canary), strings.Index(all, "sealed"))
		t.Errorf("it is told: ...%s", all[max(0, i-200):min(len(all), i+60)])
	}
	if !strings.Contains(said.String(), power.Hidden) {
		t.Error("an option with a secret is not shown as hidden")
	}
	before := r.must(200, nil, "GET", "/api/v1/hosts/r2-u01/bmc", "").body
	r.must(200, nil, "PUT", "/api/v1/hosts/r2-u01/bmc", strings.Replace(before, `"/on"`, `"/off"`, 1))
	if b := r.bmcOf("r2-u01"); !strings.HasPrefix(b.Options["header.X-Key"], "sealed:") || strings.Contains(b.Options["header.X-Key"], header) || b.Options["on.path"] != "/off" || len(b.Sealed) == 0 {
		t.Errorf("after sending back what is hidden: %v", b.Options)
	}
	moved := strings.Replace(before, "127.0.0.1:1", "127.0.0.1:2", 1)
	if p := r.ask("PUT", "/api/v1/hosts/r2-u01/bmc", moved).problem(t); p.Status != 422 {
		t.Errorf("a hidden secret would be sent to another address: %+v", p)
	}
}

func (r *rig) bmcOf(host string) (b inventory.BMC) {
	r.t.Helper()
	err := r.store.Read(r.t.Context(), func(tx inventory.Tx) error {
		h, err := rest.FindHost(tx, host)
		if err != nil {
			return err
		}
		b, err = tx.FindBMC(h.ID)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func TestControllersAreAskedAndTold(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const at = "/api/v1/hosts/r1-u01/bmc"
	r.must(200, nil, "PUT", at, `{"driver":"fake","system":"a"}`)
	var check wire.BMCCheck
	r.must(200, &check, "POST", at+"/check", "")
	if !check.IsGood || check.Power == inventory.PowerUnknown || len(check.Results) != 2 || len(check.Capabilities) < 5 {
		t.Errorf("check: %+v", check)
	}
	if l := r.bmcOf("r1-u01").LastCheck; l == nil || !l.IsGood || !l.At.Equal(r.now.Truncate(time.Millisecond)) || l.By == "" || !strings.Contains(l.Detail, "power is "+string(check.Power)+"; ") {
		t.Errorf("what is kept of the check: %+v", l)
	}
	r.account = inventory.Errorf(inventory.Unauthorized, "ann is no administrator")
	r.must(200, &check, "POST", at+"/check", "")
	if last := check.Results[len(check.Results)-1]; check.IsGood || last.Name != "account" || last.IsGood || !strings.Contains(last.Detail, "no administrator") {
		t.Errorf("check with the account of a plain user: %+v", check)
	}
	r.account = nil
	var boot wire.BMCBoot
	r.must(200, &boot, "POST", at+"/boot", `{"device":"pxe","mode":"uefi"}`)
	if boot.Device != bmc.PXE || r.bank.Boot("a").Mode != inventory.UEFI {
		t.Errorf("boot: %+v, really %+v", boot, r.bank.Boot("a"))
	}
	r.must(200, &boot, "GET", at+"/boot", "")
	var media wire.BMCMedia
	r.must(200, &media, "POST", at+"/media", `{"url":"http://10.0.0.1/a.iso"}`)
	if media.URL != "http://10.0.0.1/a.iso" {
		t.Errorf("media: %+v", media)
	}
	r.must(200, &media, "POST", at+"/media", `{"url":""}`)
	if media.URL != "" {
		t.Errorf("ejected media: %+v", media)
	}
	var users rest.List[bmc.User]
	for _, step := range []struct {
		body string
		want bool
	}{{`{"user":"ann","password":"first-one"}`, true}, {`{"user":"ann","password":"second-one"}`, true}, {`{"user":"ann","remove":true}`, false}} {
		r.must(200, &users, "POST", at+"/user", step.body)
		has := false
		for _, u := range users.Items {
			has = has || u.Name == "ann"
		}
		if has != step.want {
			t.Errorf("%s: %+v", step.body, users)
		}
		users = rest.List[bmc.User]{}
	}
	own := r.bmcOf("r1-u01").Username
	r.must(200, nil, "PUT", at, `{"driver":"fake","system":"a","username":"root"}`)
	if p := r.ask("POST", at+"/user", `{"user":"root","password":"x"}`).problem(t); p.Status != 409 || !strings.Contains(p.Hint, "rotate") {
		t.Errorf("our own account (%q before) is changed behind our back: %+v", own, p)
	}
	var sensors wire.BMCSensors
	r.must(200, &sensors, "GET", at+"/sensors", "")
	var log rest.List[bmc.LogEntry]
	r.must(200, &log, "GET", at+"/log?limit=1", "")
	if len(sensors.Items) == 0 || len(log.Items) > 1 {
		t.Errorf("sensors %+v, log %+v", sensors, log)
	}
	r.must(204, nil, "DELETE", at+"/log", "")
	r.must(200, nil, "GET", at+"/inventory", "")
	r.must(204, nil, "POST", "/api/v1/hosts/r1-u01/locate", `{"on":true}`)
	var all rest.List[wire.HostBMC]
	r.must(200, &all, "GET", "/api/v1/bmcs?limit=1", "")
	if len(all.Items) != 1 || all.Items[0].Host != "r1-u01" {
		t.Errorf("all: %+v", all)
	}
	r.must(204, nil, "DELETE", at, "")
	r.must(404, nil, "GET", at, "")
}

func TestAControllerThatCannotSaysSo(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"webhook","address":"http://127.0.0.1:1","options":{"on.path":"/on"}}`)
	for _, path := range []string{"sensors", "log", "inventory", "users", "media", "console"} {
		headers := []string{"Connection", "Upgrade", "Upgrade", power.ConsoleProtocol}
		if p := r.ask("GET", "/api/v1/hosts/r1-u01/bmc/"+path, "", headers...).problem(t); p.Status != 422 || !strings.Contains(p.Hint, "check") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","options":{"fault":"unauthorized"}}`)
	if p := r.ask("GET", "/api/v1/hosts/r1-u01/bmc/sensors", "").problem(t); p.Status != 409 {
		t.Errorf("a wrong password of the controller looks like one of the client: %+v", p)
	}
	var check wire.BMCCheck
	r.must(200, &check, "POST", "/api/v1/hosts/r1-u01/bmc/check", "")
	if check.IsGood || check.Power != inventory.PowerUnknown || check.Results[0].Detail == "" {
		t.Errorf("check: %+v", check)
	}
	b := r.bmcOf("r1-u01")
	if l := b.LastCheck; l == nil || l.IsGood || l.Detail != check.Results[0].Detail || b.IsReachable || b.Reason != l.Detail || b.CheckedAt.IsZero() {
		t.Errorf("what is kept of a check that failed: %+v, check %+v", b, l)
	}
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"b"}`)
	if l := r.bmcOf("r1-u01").LastCheck; l == nil {
		t.Error("the check is forgotten by an edit of the same controller")
	}
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"manual"}`)
	if l := r.bmcOf("r1-u01").LastCheck; l != nil {
		t.Errorf("the check of another controller is kept: %+v", l)
	}
}

// doors serves the rig over TCP on loopback until the test, or stop, ends it.
func (r *rig) doors() (addr string, stop func()) {
	r.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.srv.Serve(ctx, l, nil) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
	r.t.Cleanup(stop)
	return l.Addr().String(), stop
}

// dialConsole asks for a console and returns the connection behind the answer.
func dialConsole(t *testing.T, addr, token, host string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /api/v1/hosts/%s/bmc/console HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: slipway-console\r\nAuthorization: Bearer %s\r\n\r\n", host, token)
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, br, res.StatusCode
}

func TestTheSerialConsoleIsAConnectionOfItsOwn(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a"}`)
	token := r.token()
	addr, stop := r.doors()
	for _, tc := range []struct {
		name, token, host string
		want              int
	}{{"without token", "", "r1-u01", 401}, {"of no host", token, "nobody", 404}, {"of a host without controller", token, "r2-u01", 404}} {
		if _, _, status := dialConsole(t, addr, tc.token, tc.host); status != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, status, tc.want)
		}
	}
	if p := r.ask("GET", "/api/v1/hosts/r1-u01/bmc/console", "").problem(t); p.Status != 426 || p.Hint == "" {
		t.Errorf("without upgrade: %+v", p)
	}
	c, br, status := dialConsole(t, addr, token, "r1-u01")
	if status != 101 {
		t.Fatalf("status %d", status)
	}
	for range 2 {
		if _, err := io.WriteString(c, "\r"); err != nil {
			t.Fatal(err)
		}
		if line, err := br.ReadString('\n'); err != nil || !strings.HasPrefix(line, "a: power ") {
			t.Fatalf("the console says %q, %v", line, err)
		}
	}
	_ = c.Close()
	r.until("the console is closed behind a client that went", func() bool { return r.srv.consoles.Open() == 0 })
	_, br, _ = dialConsole(t, addr, token, "r1-u01")
	stop() // waits for consoles
	if left, _ := io.ReadAll(br); len(left) > 0 || r.srv.consoles.Open() != 0 {
		t.Errorf("after the server has ended the console says %q, %d open", left, r.srv.consoles.Open())
	}
	if !strings.Contains(r.ask("GET", "/api/v1/events?kind=bmc", "").body, "serial console opened") {
		t.Error("the timeline does not say who opened the console")
	}
}

func TestOneScanRunsAtATime(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(c *Config) {
		c.Scan = func(ctx context.Context, rng string, drivers []string) ([]wire.FoundBMC, error) {
			if rng == "10.9.0.0/24" {
				close(started)
				select {
				case <-release:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > power.ScanFor {
				t.Error("a scan may run for ever")
			}
			return []wire.FoundBMC{{Address: "https://10.9.0.7", Driver: inventory.Redfish}, {Address: "10.9.0.6:623", Driver: inventory.IPMI, Name: strings.Join(drivers, "+")}}, nil
		}
	})
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"redfish","address":"https://10.9.0.7/"}`)
	first := make(chan answer, 1)
	go func() {
		first <- ask(t, r.srv.SocketHandler(), "POST", "/api/v1/scans", `{"range":"10.9.0.0/24","drivers":["ipmi","redfish"]}`)
	}()
	<-started
	if p := r.ask("POST", "/api/v1/scans", `{"range":"10.8.0.0/24"}`).problem(t); p.Status != 409 || p.Hint == "" {
		t.Errorf("a second scan: %+v", p)
	}
	close(release)
	if a := <-first; a.status != 200 {
		t.Fatalf("the first scan: %d %s", a.status, a.body)
	}
	var found rest.List[wire.FoundBMC]
	r.must(200, &found, "POST", "/api/v1/scans", `{"range":"10.8.0.0/24"}`)
	want := []wire.FoundBMC{{Address: "10.9.0.6:623", Driver: inventory.IPMI}, {Address: "https://10.9.0.7", Driver: inventory.Redfish, Host: "r1-u01"}}
	if d := cmp.Diff(want, found.Items); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
}

func TestTheAcceptanceSheetIsDataAndAPage(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.furnish()
	var sheet struct {
		Host struct{ Name string }
	}
	r.must(200, &sheet, "GET", "/api/v1/hosts/r1-u01/report", "")
	if sheet.Host.Name != "r1-u01" {
		t.Errorf("sheet: %+v", sheet)
	}
	for _, a := range []answer{
		r.must(200, nil, "GET", "/api/v1/hosts/r1-u01/report.html", ""),
		r.must(200, nil, "GET", "/api/v1/hosts/r1-u01/report", "", "Accept", "text/html,*/*"),
	} {
		policy := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(a.body, "r1-u01") ||
			!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || len(a.header.Values("Content-Security-Policy")) != 1 {
			t.Errorf("page as %s, policy %q", a.header.Get("Content-Type"), policy)
		}
	}
	var i inventory.Inspection
	r.must(200, &i, "GET", "/api/v1/hosts/r1-u01/hardware?n=1", "")
	var all rest.List[inventory.Inspection]
	r.must(200, &all, "GET", "/api/v1/hosts/r1-u01/inspections", "")
	var reports rest.List[inventory.Report]
	r.must(200, &reports, "GET", "/api/v1/hosts/r1-u01/reports?kind=burn-in", "")
	if i.Hardware.Disks[0].Serial != "S1" || len(all.Items) != 1 || len(reports.Items) != 1 {
		t.Errorf("inspection %+v, %d in all, reports %+v", i, len(all.Items), reports)
	}
}

// A connection is tested before it is saved: nothing is stored by it, and the stored password goes to no other address.
func TestAControllerIsTriedBeforeItIsSaved(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const at = "/api/v1/hosts/r1-u01/bmc"
	var check wire.BMCCheck
	r.must(200, &check, "POST", at+"/test", `{"driver":"fake","system":"a"}`)
	if !check.IsGood || len(check.Results) != 2 || check.Results[0].Name != "login" || check.Results[1].Name != "rights" {
		t.Errorf("%+v", check)
	}
	r.must(404, nil, "GET", at, "")
	r.account = inventory.Errorf(inventory.Unauthorized, "ann is no administrator")
	r.must(200, &check, "POST", at+"/test", `{"driver":"fake","system":"a"}`)
	if last := check.Results[len(check.Results)-1]; check.IsGood || last.Name != "rights" || last.IsGood || last.Detail != "ann is no administrator" {
		t.Errorf("%+v", check)
	}
	r.must(200, &check, "POST", at+"/test", `{"driver":"fake","system":"a","options":{"on.path":"/on"}}`)
	if last := check.Results[0]; check.IsGood || last.Name != "options" || !strings.Contains(last.Detail, "on.path") {
		t.Errorf("an option of another driver: %+v", check)
	}
	r.must(422, nil, "PUT", at, `{"driver":"fake","system":"a","options":{"on.path":"/on"}}`)
	r.must(404, nil, "POST", "/api/v1/hosts/nobody/bmc/test", `{"driver":"fake","system":"a"}`)
}
