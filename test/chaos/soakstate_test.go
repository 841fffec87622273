package chaos

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// state is what a server holds when nothing is going on.
type state struct {
	at      time.Time
	metrics map[string]float64
	rows    map[string]int // by table
	bytes   int64          // of the data directory
	files   int
}

// rest waits until nothing is going on any more, and looks.
func (d *day) rest() state {
	d.t.Helper()
	d.api.Close()
	var least state
	for range 4 { // each glide ends what waits for its time, and has garbage collected
		d.glide(3 * time.Minute)
		time.Sleep(time.Second)
		now := state{at: d.now(), metrics: d.metrics()}
		if least.metrics == nil {
			least = now
			continue
		}
		for name, v := range now.metrics {
			least.metrics[name] = min(v, least.metrics[name])
		}
	}
	least.rows = d.rows()
	_ = filepath.WalkDir(d.victim.data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Base(filepath.Dir(path)) != "record" { // which has its own bound
			least.files++
			if info, err := e.Info(); err == nil {
				least.bytes += info.Size()
			}
		}
		return nil
	})
	return least
}

// metrics reads what the server says of itself, through its socket.
func (d *day) metrics() map[string]float64 {
	d.t.Helper()
	to := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.victim.data, "slipway.sock"))
	}}
	res, err := (&http.Client{Transport: to, Timeout: 10 * time.Second}).Get("http://slipway/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(name, "#") {
			out[name] = v
		}
	}
	return out
}

// rows counts the rows of all tables, in the file that the server writes.
func (d *day) rows() map[string]int {
	d.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(d.victim.data, "slipway.db")+"?mode=ro")
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	var tables []string
	names, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		d.t.Fatal(err)
	}
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			d.t.Fatal(err)
		}
		tables = append(tables, name)
	}
	names.Close()
	out := map[string]int{}
	for _, name := range tables {
		var n int
		if err := db.QueryRow(`SELECT COUNT(*) FROM "` + name + `"`).Scan(&n); err != nil {
			d.t.Fatal(err)
		}
		out[name] = n
	}
	return out
}

// bounds are how much more the server may hold at the end of the day than at its beginning.
var bounds = []struct {
	metric string
	more   float64
	part   float64 // of what it was
}{
	{"go_goroutines", 6, 0},
	{"go_threads", 6, 0},
	{"process_open_fds", 5, 0},
	{"heap in use", 1 << 20, 0.05},
	{"process_resident_memory_bytes", 16 << 20, 0.1},
}

// growing are tables that keep everything, and why.
var growing = map[string]string{
	"audit":     "what people did is kept for ever",
	"revisions": "profiles keep what they were",
	"reports":   "what was wiped and installed is kept for ever",
}

// full are tables that grow until they hold that much.
var full = map[string]int{
	"leases": 510, // one for each address of soakRange
}

// judge compares two states.
func (d *day) judge(before, after state) {
	for _, s := range []state{before, after} { // the record of packets has its own bound
		s.metrics["heap in use"] = s.metrics["go_gc_heap_live_bytes"] - s.metrics["slipway_record_bytes"]
	}
	var said strings.Builder
	fmt.Fprintf(&said, "between %s and %s of the server's time:", before.at.Format(time.DateTime), after.at.Format(time.DateTime))
	for _, b := range bounds {
		was, is := before.metrics[b.metric], after.metrics[b.metric]
		fmt.Fprintf(&said, "\n%-32s %12.0f %12.0f", b.metric, was, is)
		if was == 0 || is > was+b.more+b.part*was {
			d.t.Errorf("%s has grown from %.0f to %.0f", b.metric, was, is)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.rows)) {
		was, is := before.rows[name], after.rows[name]
		fmt.Fprintf(&said, "\nrows of %-24s %12d %12d", name, was, is)
		if is > max(was+was/2+50, full[name]) && growing[name] == "" {
			d.t.Errorf("the table %s has grown from %d to %d rows", name, was, is)
		}
	}
	fmt.Fprintf(&said, "\nbytes on disk %31d %12d\nfiles %39d %12d", before.bytes, after.bytes, before.files, after.files)
	if after.bytes > before.bytes+before.bytes/2+8<<20 {
		d.t.Errorf("the data directory has grown from %d to %d bytes", before.bytes, after.bytes)
	}
	if after.files > before.files+2 {
		d.t.Errorf("the data directory has grown from %d to %d files", before.files, after.files)
	}
	d.t.Log(said.String())
}
