package storage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

const (
	checkName = "database"      // in the self-check
	clockOff  = 2 * time.Second // from there on an admin hears of it
)

// Probe asks the PostgreSQL server, and changes nothing.
func (s Settings) Probe() doctor.Check {
	password, err := s.password()
	if err != nil {
		return failure(err)
	}
	h, err := sqlstore.Look(s.URL, password)
	if err != nil {
		return failure(err)
	}
	return s.judge(&h)
}

func failure(err error) doctor.Check {
	k := doctor.Check{Name: checkName, Status: doctor.Failed, Detail: inventory.Clean(err.Error(), 300)}
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		k.Hint = said.Hint
	}
	return k
}

// judge says what is wrong with a server that answers.
func (s Settings) judge(h *postgres.Health) doctor.Check {
	a, err := postgres.ReadAddress(s.URL)
	if err != nil {
		return failure(err)
	}
	k := doctor.Check{
		Name: checkName, Status: doctor.OK,
		Detail: fmt.Sprintf("%s, PostgreSQL %s at %s, answers in %s",
			a.URL, inventory.Clean(h.Version, 40), h.Server, h.RoundTrip.Round(10*time.Microsecond)),
	}
	if h.Note != "" {
		k.Detail += "; " + h.Note
	}
	warn := func(detail, hint string) {
		k.Status, k.Detail = doctor.Warning, k.Detail+"; "+detail
		k.Hint = strings.TrimPrefix(k.Hint+"; "+hint, "; ")
	}
	for _, r := range h.Risks(a.ServerN) {
		warn(r.Cause, r.Hint)
	}
	if off := h.Ahead.Abs(); off > clockOff+h.RoundTrip/2 {
		where := "ahead of"
		if h.Ahead < 0 {
			where = "behind"
		}
		warn(fmt.Sprintf("the clock of this machine is %s %s that of the database: another instance ends leases at other times",
			off.Round(100*time.Millisecond), where), "let NTP set the clocks of both machines: timedatectl set-ntp true")
	}
	for _, index := range h.Slow {
		warn(index+" is missing: some answers take long", postgres.MissingHint)
	}
	if what := h.WaitsFor(); what != "" {
		warn("commits wait for "+what, "start the standby, or take it out of synchronous_standby_names")
	}
	if len(a.Plain) > 0 {
		warn("the connection to "+strings.Join(a.Plain, ", ")+" may go without TLS: others on the way can read and change the inventory",
			"write sslmode=verify-full into the address")
	}
	if len(a.Unverified) > 0 && len(a.Plain) == 0 {
		warn("nobody checks the certificate of "+strings.Join(a.Unverified, ", ")+": others on the way can pretend to be the database",
			"write sslmode=verify-full into the address, and sslrootcert=FILE")
	}
	return k
}
