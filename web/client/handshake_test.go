package client_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// A server whose certificate is not trusted was taken for one that does not run.
func TestAServerThatRunsIsNotTakenForOneThatDoesNot(t *testing.T) {
	quiet := func(s *httptest.Server, start func()) *httptest.Server {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		start()
		t.Cleanup(s.Close)
		return s
	}
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewUnstartedServer(none)
	quiet(secure, secure.StartTLS)
	plain := httptest.NewUnstartedServer(none)
	quiet(plain, plain.Start)
	for _, tc := range []struct{ server, msg, hint string }{
		{secure.URL, "is signed by nobody whom this computer trusts", "slipway tls show --ca"},
		{"http" + strings.TrimPrefix(secure.URL, "https"), "speaks TLS only", "write " + secure.URL},
		{"https" + strings.TrimPrefix(plain.URL, "http"), "does not speak TLS", "http://"},
	} {
		c, err := client.New(client.Config{Server: tc.server, Token: "x"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = c.Version(t.Context())
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Unavailable || !strings.Contains(e.Msg, tc.msg) || !strings.Contains(e.Hint, tc.hint) {
			t.Errorf("%s: %#v", tc.server, err)
		}
	}
}
