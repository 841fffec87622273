package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheDoorRefusesABodyThatIsNotUTF8(t *testing.T) {
	r := newRig(t, nil)
	a := r.ask("PUT", "/api/v1/layers/global", "{\"config\": \"host: {timezone: caf\xe9}\"}")
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "line 1, column 33") || !strings.Contains(a.body, "iconv") {
		t.Errorf("%d: %s", a.status, a.body)
	}
}
