package redfish

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

// adds puts a field into the document that the service answers with.
func adds(name, value string) redfishtest.Effect {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		rec := httptest.NewRecorder()
		service.ServeHTTP(rec, r)
		var doc map[string]any
		if json.Unmarshal(rec.Body.Bytes(), &doc) == nil && doc["@odata.type"] != nil {
			doc[name] = value
			_ = json.NewEncoder(w).Encode(doc)
			return
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}
}

func TestTheTimeOfTheLastRestartIsByTheControllersOwnClock(t *testing.T) {
	for name, c := range map[string]struct {
		last, now string
		want      time.Duration
		isNone    bool
	}{
		"a clock of the year 2000":        {"2000-01-01T00:10:00Z", "2000-01-01T00:12:30Z", 150 * time.Second, false},
		"two time zones":                  {"2026-11-26T10:00:00+02:00", "2026-11-26T08:00:30Z", 30 * time.Second, false},
		"a restart that is still to come": {"2026-11-26T10:00:00Z", "2026-11-26T09:00:00Z", 0, true},
		"no time of the restart":          {"", "2026-11-26T09:00:00Z", 0, true},
		"no clock":                        {"2026-11-26T10:00:00Z", "", 0, true},
		"words":                           {"yesterday", "2026-11-26T09:00:00Z", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{Powered: true})
			s.Script(redfishtest.Fault{Method: "GET", Path: "/Systems/", Do: adds("LastResetTime", c.last)},
				redfishtest.Fault{Method: "GET", Path: "/Managers/", Do: adds("DateTime", c.now)})
			got, err := d.SinceRestart(t.Context())
			if c.isNone {
				is(t, err, inventory.NotFound)
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
