package web

import (
	"bufio"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/web/wire"
)

// followed opens the console of a host as a browser does, and returns what it says piece by piece.
func followed(t *testing.T, addr, token, host string) (next func() string, leave func()) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/api/v1/hosts/"+host+"/console/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		t.Fatalf("status %d: %s", res.StatusCode, b)
	}
	br := bufio.NewReader(res.Body)
	return func() string {
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream broke off: %v", err)
			}
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data: "); ok {
				b, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
		}
	}, func() { _ = res.Body.Close() }
}

func TestTwoLookAtOneConsoleAndItIsRecorded(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a"}`)
	token := r.token()
	addr, _ := r.doors()
	if p := r.ask("POST", "/api/v1/hosts/r1-u01/console/type", `{"text":"x"}`).problem(t); p.Status != 409 || p.Hint == "" {
		t.Errorf("typing into a console that is not open: %+v", p)
	}
	if p := r.ask("GET", "/api/v1/hosts/r2-u01/console/stream", "").problem(t); p.Status != 404 {
		t.Errorf("the console of a host without controller: %+v", p)
	}
	one, leaveOne := followed(t, addr, token, "r1-u01")
	two, leaveTwo := followed(t, addr, token, "r1-u01")
	if one() != "" || two() != "" {
		t.Error("a console begins with something that nobody said")
	}
	r.must(204, nil, "POST", "/api/v1/hosts/r1-u01/console/type", `{"text":"\r"}`)
	for i, next := range []func() string{one, two} {
		if said := next(); !strings.HasPrefix(said, "a: power ") {
			t.Errorf("who looks as no. %d reads %q", i+1, said)
		}
	}
	leaveOne()
	r.must(204, nil, "POST", "/api/v1/hosts/r1-u01/console/type", `{"text":"\r"}`)
	if said := two(); !strings.HasPrefix(said, "a: power ") {
		t.Errorf("after the other has left: %q", said)
	}
	leaveTwo()
	r.until("the console is closed behind the last who left", func() bool {
		var l wire.ConsoleLog
		r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log", "")
		return !l.IsOpen
	})
	var l wire.ConsoleLog
	r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log?plain=true", "")
	if strings.Count(l.Text, "a: power ") != 2 || l.End == 0 {
		t.Errorf("recorded: %+v", l)
	}
	r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log?search=POWER", "")
	if strings.Count(l.Text, "\n") != 1 {
		t.Errorf("lines with power: %q", l.Text)
	}
	if r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log?search=nothing", ""); l.Text != "" {
		t.Errorf("lines with what was never said: %q", l.Text)
	}
	r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log?lines=true&search=power", "")
	if len(l.Lines) != 2 || l.Text != "" || l.Lines[0].At.IsZero() {
		t.Errorf("lines are %+v", l)
	}
	l = wire.ConsoleLog{}
	r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/console/log?lines=true&until=2001-01-01T00:00:00Z", "")
	if len(l.Lines) != 0 {
		t.Errorf("before anything was said: %+v", l.Lines)
	}
	again, _ := followed(t, addr, token, "r1-u01")
	if past := again(); strings.Count(past, "a: power ") != 2 {
		t.Errorf("who comes later begins with %q", past)
	}
}
