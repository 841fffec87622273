package web

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

func TestAFileLargerThanAnyOtherBodyIsTaken(t *testing.T) {
	r := newRig(t, nil)
	big := rest.BodyMax + 1000
	var a inventory.Artefact
	r.must(http.StatusCreated, &a, "POST", "/api/v1/artefacts?name=disk.raw", string(bytes.Repeat([]byte{'x'}, big)), "Content-Type", "application/octet-stream")
	if a.SizeBytes != int64(big) || a.Source != "upload:disk.raw" {
		t.Errorf("%+v", a)
	}
	if a := r.ask("POST", "/api/v1/artefacts", "x"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d %s", a.status, a.body)
	}
	// Elsewhere the bound stands.
	if a := r.ask("POST", "/api/v1/profiles", strings.Repeat(" ", big)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a profile of %d bytes: %d", big, a.status)
	}
}

func TestAnImportIsTriedAgainWithTheRightsOfWhoAsks(t *testing.T) {
	r := newRig(t, nil)
	var j images.Job
	r.must(http.StatusAccepted, &j, "POST", "/api/v1/imports/job1/retry", "")
	if j.Image != "again" || !r.jobs.started[0].AllowLocal {
		t.Errorf("on the server itself: %+v, started %+v", j, r.jobs.started)
	}
	a := ask(t, r.srv.Handler(), "POST", "/api/v1/imports/job1/retry", "", "Authorization", "Bearer "+r.token())
	if a.status != http.StatusAccepted || r.jobs.started[1].AllowLocal {
		t.Errorf("from elsewhere: %d, started %+v", a.status, r.jobs.started)
	}
	if a := r.ask("POST", "/api/v1/imports/nope/retry", ""); a.status != http.StatusNotFound {
		t.Errorf("one that is not known: %d", a.status)
	}
}

func TestASecretSaysAllThatUseIt(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, name := range []string{"db", "db-2"} {
		r.must(200, nil, "PUT", "/api/v1/secrets/"+name, `{"value":"x"}`)
	}
	r.must(200, nil, "PUT", "/api/v1/profiles/worker", `{"image":"debian","config":"files: [{path: /etc/pw, secret: 'secret://db'}]\n"}`)
	r.must(200, nil, "PUT", "/api/v1/layers/rack%2Fr9", `{"config":"files: [{path: /etc/pw, secret: 'secret://db'}]\n"}`)
	var u wire.SecretUses
	r.must(200, &u, "GET", "/api/v1/secrets/db/uses", "")
	if !slices.Equal(u.UsedBy, []string{"profile worker", "layer rack/r9"}) {
		t.Errorf("db is used by %q", u.UsedBy)
	}
	r.must(200, &u, "GET", "/api/v1/secrets/db-2/uses", "")
	if u.UsedBy == nil || len(u.UsedBy) > 0 {
		t.Errorf("db-2 is used by %q", u.UsedBy)
	}
	if a := r.ask("GET", "/api/v1/secrets/nope/uses", ""); a.status != http.StatusNotFound {
		t.Errorf("one that is not there: %d", a.status)
	}
}
