package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/rest"
)

// shape lists the JSON fields of a type with their kinds, as deep as they go.
func shape(t reflect.Type, prefix string, out map[string]string) {
	if t == reflect.TypeFor[json.RawMessage]() { // what stands there is left to the caller
		out[prefix] = reflect.Interface.String()
		return
	}
	switch {
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		shape(t.Elem(), prefix+"[]", out)
	case t.Kind() == reflect.Struct && !strings.Contains(t.PkgPath(), "inventory") && t.PkgPath() != "time" && t.PkgPath() != "net/netip" ||
		t.PkgPath() == "slipway.dev/slipway/inventory/transfer" && t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported():
			case f.Anonymous:
				shape(f.Type, prefix, out)
			default:
				shape(f.Type, prefix+"."+name, out)
			}
		}
	default:
		out[prefix] = t.Kind().String()
	}
}

func shapeOf(v any) map[string]string {
	out := map[string]string{}
	shape(reflect.TypeOf(v), "", out)
	return out
}

func TestTheClientKnowsTheServersTypes(t *testing.T) {
	for name, pair := range map[string][2]any{
		"problem": {client.Problem{}, rest.Problem{}},
		"diff":    {client.Diff{}, rest.Diff{}},
	} {
		if diff := cmp.Diff(shapeOf(pair[1]), shapeOf(pair[0])); diff != "" {
			t.Errorf("%s (-server +client):\n%s", name, diff)
		}
	}
}

func connect(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := client.New(client.Config{Server: srv.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestErrorsComeBackAsTheServerMeantThem(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		status     int
		want       inventory.Error
		isWhole    bool // the message is all of the error
	}{
		{
			"a problem", `{"detail":"no such host","kind":"not-found","hint":"list them"}`, 404,
			inventory.Error{Kind: inventory.NotFound, Msg: "no such host", Hint: "list them"},
			false,
		},
		{
			"a problem with fields", `{"detail":"the request is not valid","kind":"invalid","errors":[{"location":"body.mtu","message":"expected number"}]}`, 422,
			inventory.Error{Kind: inventory.Invalid, Msg: "the request is not valid: body.mtu: expected number"},
			false,
		},
		{
			"an internal one", `{"detail":"went wrong","kind":"internal","requestID":"abc"}`, 500,
			inventory.Error{Kind: inventory.Internal, Msg: "went wrong", Hint: "look for request abc in the server's log"},
			false,
		},
		{"another server", `<html>`, 502, inventory.Error{Kind: inventory.Unavailable, Msg: "502 Bad Gateway", Hint: "same version"}, false},
		{"a redirect", ``, 302, inventory.Error{Kind: inventory.Unavailable, Msg: "302 Found", Hint: "same version"}, false},
		{"no JSON", `{`, 200, inventory.Error{Kind: inventory.Unavailable, Msg: "cut short", Hint: "same version"}, false},
		{
			"a field that the message is about", `{"detail":"option wpad: no option is called so","kind":"invalid","hint":"give its number","errors":[{"location":"body.options","message":"option wpad: no option is called so"}]}`, 422,
			inventory.Error{Kind: inventory.Invalid, Msg: "option wpad: no option is called so", Hint: "give its number"},
			true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Error("no token")
				}
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprint(w, tc.body)
			})
			_, err := c.Hosts.Get(t.Context(), "x")
			var e *inventory.Error
			if tc.isWhole && err.Error() != tc.want.Msg {
				t.Errorf("got %q, want %q", err, tc.want.Msg)
			}
			if !errors.As(err, &e) || e.Kind != tc.want.Kind || !strings.Contains(e.Msg, tc.want.Msg) || !strings.Contains(e.Hint, tc.want.Hint) {
				t.Errorf("got %#v, want %#v", err, tc.want)
			}
		})
	}
}

func TestAServerThatIsNotThereIsExplained(t *testing.T) {
	for server, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.sock"): "no server runs on this machine: there is no",
		"http://127.0.0.1:1":                    "no answer from the server at http://127.0.0.1:1",
	} {
		c, err := client.New(client.Config{Server: server})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Version(t.Context())
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Unavailable || !strings.Contains(e.Msg, want) || !strings.Contains(e.Hint, "slipway serve") {
			t.Errorf("%s: %#v", server, err)
		}
	}
	for _, server := range []string{"", "ftp://x", "127.0.0.1:8067", "http://", "http://u:p@x/", "http://x/?y"} {
		if _, err := client.New(client.Config{Server: server}); err == nil {
			t.Errorf("%q is taken for a server", server)
		}
	}
}

func TestNamesAreEscaped(t *testing.T) {
	got := ""
	c := connect(t, func(w http.ResponseWriter, r *http.Request) { got = r.RequestURI; w.WriteHeader(204) })
	if err := c.Profiles.Delete(t.Context(), "a/../b?c#d e"); err != nil || got != "/api/v1/profiles/a%2F..%2Fb%3Fc%23d%20e" {
		t.Errorf("%v, %s", err, got)
	}
}

func TestFollowGoesOnBehindTheLastEventItSaw(t *testing.T) {
	var asked []string
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("after"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(asked) {
		case 1: // begins, sends one and a half
			_, _ = fmt.Fprint(w, "retry: 1000\nid: 40\n\nid: 41\ndata: {\"id\":41,\"kind\":\"a\"}\n\nid: 42\ndata: {\"id\":42")
		case 2: // overloaded
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(503)
			_, _ = fmt.Fprint(w, `{"detail":"busy","kind":"unavailable"}`)
		case 3: // says only that it is alive
			_, _ = fmt.Fprint(w, ": alive\n\n")
		default:
			_, _ = fmt.Fprintf(w, "id: 42\r\ndata: {\"id\":42,\"kind\":\"b\",\"detail\":\"%s\"}\r\n\r\n: alive\n\n", strings.Repeat("x", 100_000))
		}
	})
	var ids []int64
	for e, err := range c.Follow(t.Context(), client.EventQuery{After: client.FromNow}) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, e.ID); e.ID == 42 {
			break
		}
	}
	if !slices.Equal(ids, []int64{41, 42}) || !slices.Equal(asked, []string{"9223372036854775807", "41", "41", "41"}) {
		t.Errorf("events %v, asked after %v", ids, asked)
	}
}

func TestFollowGivesUpWhereTryingAgainIsUseless(t *testing.T) {
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		_, _ = fmt.Fprint(w, `{"detail":"who are you","kind":"unauthorized"}`)
	})
	n := 0
	for _, err := range c.Follow(t.Context(), client.EventQuery{}) {
		if n++; err == nil {
			t.Error("an event without a token")
		}
	}
	if n != 1 {
		t.Errorf("%d results, want the one error", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := connect(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, err := range silent.Follow(ctx, client.EventQuery{}) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestWatchJobEndsWithTheJob(t *testing.T) {
	n := int64(0)
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("revision") != fmt.Sprint(n) {
			t.Errorf("asked for what is after %s, want %d", r.URL.Query().Get("revision"), n)
		}
		n++
		state := "running"
		if n == 3 {
			state = "done"
		}
		_, _ = fmt.Fprintf(w, `{"id":"j","state":%q,"revision":%d}`, state, n)
	})
	var states []string
	for j, err := range c.WatchJob(t.Context(), "j") {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, string(j.State))
	}
	if !slices.Equal(states, []string{"running", "running", "done"}) {
		t.Errorf("states %v", states)
	}
}
