package attack_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

const adminDoor = "127.0.0.1:8067"

// as makes a user with these roles, and returns the user's client at the admin door.
func as(a *netlab.Appliance, name string, grants ...inventory.Grant) *client.Client {
	t := a.Lab.T
	t.Helper()
	if _, err := a.API.Users.Create(t.Context(), inventory.User{Name: name, Grants: grants}); err != nil {
		t.Fatal(err)
	}
	made, err := a.API.NewToken(t.Context(), client.TokenWish{Name: name, User: &name})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Server: "http://" + adminDoor, Token: made.Secret, Dial: inside(a, a.Net.Server, "")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inside dials in a namespace, from an address of it; "" is any.
func inside(a *netlab.Appliance, ns, from string) func(ctx context.Context, network, to string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (c net.Conn, err error) {
		a.Lab.Inside(ns, func() error {
			d := net.Dialer{Timeout: requestLimit}
			if from != "" {
				d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
			}
			c, err = d.DialContext(ctx, network, to)
			return nil
		})
		return c, err
	}
}

// ask sends a request from an address of a namespace, and returns the status and the body of the answer. A body makes it a
// POST of JSON.
func ask(a *netlab.Appliance, ns, from, url, token, body string) (int, string) {
	t := a.Lab.T
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	c := http.Client{Timeout: 2 * requestLimit, Transport: &http.Transport{DialContext: inside(a, ns, from), DisableKeepAlives: true}}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// isRefused reports whether the server refused a request with a reason, and not because it could not serve it.
func isRefused(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && (e.Kind == inventory.Forbidden || e.Kind == inventory.Invalid) && e.Msg != ""
}

// event waits until an event of a kind has words in its detail, and fails the test without one.
func event(a *netlab.Appliance, kind, words string) {
	t := a.Lab.T
	t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		p, err := a.API.Events(t.Context(), client.EventQuery{Kind: kind, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Items {
			if strings.Contains(e.Detail, words) {
				return
			}
		}
	}
	t.Errorf("no event %s says %q", kind, words)
}
