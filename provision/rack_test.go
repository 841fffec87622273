package provision

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// rack is an engine on a real store, with a clock that stands still until a test moves it.
type rack struct {
	t      *testing.T
	store  *sqlstore.Store
	engine *Engine
	clock  time.Time
	policy inventory.UnknownPolicy
	ids    int
	open   bmc.Opener      // nil: nothing is powered
	nodes  operation.Nodes // nil: nothing is drained

	renderer *render.Renderer // nil: nothing is rendered
	others   []netip.Addr     // of other instances
	gone     string           // why the instance is gone that machines boot from, "" while it lives
}

const base = "http://10.0.0.1"

// emptyDatabase is the file of a database with all tables. Each rack begins with a copy, because the migrations take a tenth of a
// second of processor time.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "slipway-rack-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "slipway.db")
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Path: path})
	if err != nil {
		return nil, err
	}
	// Close moves what the write-ahead log has into the file.
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func newRack(t *testing.T) *rack {
	t.Helper()
	database, err := emptyDatabase()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "slipway.db")
	if err := os.WriteFile(path, database, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		storetest.CheckRefs(t, store)
		store.Close()
	})
	r := &rack{t: t, store: store, clock: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), policy: inventory.UnknownWait}
	r.restart()
	return r
}

// restart replaces the engine by a new one on the same store, as after a kill.
func (r *rack) restart() {
	r.engine = New(Config{
		Store: r.store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "ACME" }, ReportKey: []byte("the key of a rack's reports"),
		Policy: func(string) inventory.UnknownPolicy { return r.policy },
		NewID: func() inventory.HostID {
			r.ids++
			return inventory.HostID(fmt.Sprintf("00000000-0000-7000-8000-%012d", r.ids))
		},
		Now:     func() time.Time { return r.clock },
		NewULID: func() string { r.ids++; return fmt.Sprintf("01K%023d", r.ids) },
		Nodes:   r.nodes, Site: "fra", Secrets: plain{}, Sealer: plain{}, Renderer: r.renderer, OpenBMC: r.open, Pace: bmc.Pace{Every: time.Millisecond, For: 5 * time.Millisecond, Tries: 2, Backoff: time.Millisecond},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Others: func() []netip.Addr { return r.others },
		Gone: func(netip.Addr) string { return r.gone },
	})
}

// settle writes what was noted, as the recorder does behind the packets.
func (r *rack) settle() {
	r.t.Helper()
	r.engine.recorder.Flush(context.Background())
	if n := r.engine.recorder.LostN(); n != 0 {
		r.t.Fatalf("%d notes lost", n)
	}
}

func (r *rack) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rack) write(fn func(inventory.Tx) error) {
	r.t.Helper()
	r.must(r.store.Write(context.Background(), fn))
}

// liveImage stores an image that boots to memory, and a profile for it.
func (r *rack) image(name string, isInstaller bool, selector string, priority int) {
	r.t.Helper()
	digest := inventory.Digest("sha256:" + strings.Repeat(fmt.Sprintf("%02x", len(name)), 32))
	r.write(func(tx inventory.Tx) error {
		if err := tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 1, Source: "test", CreatedAt: r.clock}); err != nil {
			return err
		}
		if _, err := tx.Images().Find("image-" + name); err != nil {
			if err := tx.Images().Create(&inventory.Image{
				Name: "image-" + name, OS: "custom", Release: "1", Arch: inventory.X8664, IsInstaller: isInstaller,
				Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}},
			}, r.clock); err != nil {
				return err
			}
		}
		return tx.Profiles().Create(&inventory.Profile{Name: name, Image: "image-" + name, Selector: selector, Priority: priority}, r.clock)
	})
}

// machine plays one machine that boots.
type machine struct {
	r    *rack
	n    int
	uuid string
	port string // that its relay names
}

func (r *rack) machine(n int) *machine {
	return &machine{r: r, n: n, uuid: fmt.Sprintf("4c4c4544-0000-4000-8000-%012d", n)}
}

// accepted is a machine that was discovered and accepted, in a rack whose machines boot the image live.
func (r *rack) accepted() *machine {
	r.image("live", false, "mac", 0)
	m := r.machine(1)
	m.boot()
	m.accept()
	return m
}

func (m *machine) mac() inventory.MAC { return inventory.MAC(fmt.Sprintf("52:54:00:aa:00:%02x", m.n)) }

func (m *machine) address() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + m.n)}) }

func (m *machine) at(s pxe.Stage) pxe.Client {
	return pxe.Client{
		Stage: s, MAC: m.mac(), Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: pxe.Arch93(7), UUID: m.uuid,
		Class: "PXEClient:Arch:00007:UNDI:003000", Address: m.address(), Subnet: "rack", Server: netip.MustParseAddr("10.0.0.1"),
		HasPort: m.port != "", Port: m.port,
	}
}

// dhcp plays the four packets of one exchange and returns what the answer says to boot.
func (m *machine) dhcp(s pxe.Stage) pxe.Reply {
	ctx, c := context.Background(), m.at(s)
	m.r.engine.Offer(ctx, c, base)
	m.r.engine.Note(ctx, c, inventory.EventDHCPDiscover, "")
	m.r.engine.Note(ctx, c, inventory.EventDHCPOffer, "")
	reply := m.r.engine.Offer(ctx, c, base)
	m.r.engine.Note(ctx, c, inventory.EventDHCPAck, "")
	m.r.settle()
	return reply
}

// script asks for the script as iPXE does, under the session in the URL that DHCP gave.
func (m *machine) script(url string) string {
	m.r.t.Helper()
	c := m.at(pxe.StageIPXE)
	c.Identity = &pxe.Identity{UUID: m.uuid, Serial: fmt.Sprintf("SN%d", m.n), Manufacturer: "ACME", Product: "R640", MemoryMiB: 4096}
	out, err := m.r.engine.Script(context.Background(), sessionIn(url), c, base)
	m.r.must(err)
	return string(out)
}

func sessionIn(url string) inventory.SessionID {
	if parts := strings.Split(url, "/"); len(parts) > 4 && len(parts[4]) == 32 {
		return inventory.SessionID(parts[4])
	}
	return ""
}

// boot plays a whole network boot up to the script and returns the script and the session.
func (m *machine) boot() (script string, session inventory.SessionID) {
	m.r.t.Helper()
	m.r.clock = m.r.clock.Add(2 * time.Minute)
	m.dhcp(pxe.StageFirmware)
	m.r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi"})
	m.r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
	m.r.settle()
	reply := m.dhcp(pxe.StageIPXE)
	return m.script(reply.File), sessionIn(reply.File)
}

func (m *machine) host() inventory.Host {
	m.r.t.Helper()
	var h inventory.Host
	m.r.must(m.r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		h, err = tx.FindHostByMAC(m.mac())
		return err
	}))
	return h
}

func (r *rack) session(id inventory.SessionID) (s inventory.BootSession) {
	r.t.Helper()
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		s, err = tx.FindSession(id)
		return err
	}))
	return s
}

// kinds returns the kinds of all events of a session, in order.
func (r *rack) kinds(id inventory.SessionID) (kinds []string) {
	r.t.Helper()
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{SessionID: id}, 0, 1000)
		for _, e := range all {
			kinds = append(kinds, e.Kind)
		}
		return err
	}))
	return kinds
}

func (r *rack) openIssues() (issues []inventory.Issue) {
	r.t.Helper()
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		issues, err = tx.ListIssues(false, "")
		return err
	}))
	return issues
}

func (m *machine) accept() {
	m.r.t.Helper()
	_, err := m.r.engine.Accept(context.Background(), m.host().ID, ledger.By("a test"))
	m.r.must(err)
}

func (m *machine) report(s inventory.SessionID, step pxe.ReportStep) error {
	return m.r.engine.Report(context.Background(), s, m.address(), "", pxe.Report{Step: step, Detail: "Linux 6.1"})
}
