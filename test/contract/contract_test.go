// Package contract tests a promise between the doors: every boot file that DHCP can name is served by TFTP and HTTP,
// and every URL in a script leads somewhere. It runs the real engine, store, cache and boot door, without any packet.
package contract

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/httpboot"
)

// house is a boot server on a loopback address, without DHCP.
type house struct {
	t       *testing.T
	store   inventory.Store
	engine  *provision.Engine
	loaders *images.Loaders
	base    string
	hosts   int
}

// here is the address of server and machines alike; a session belongs to its machine's address.
var here = netip.MustParseAddr("127.0.0.1")

func newHouse(t *testing.T) *house {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	store, err := sqlstore.Open(ctx, sqlstore.Config{Path: filepath.Join(dir, "slipway.db")})
	must(t, err)
	loaders, err := images.LoadLoaders([]string{everyLoader(t, dir)})
	must(t, err)
	catalogue, err := images.BuiltinCatalogue()
	must(t, err)
	cache, err := images.New(images.Config{Dir: filepath.Join(dir, "artefacts"), Store: store, Catalogue: catalogue, Now: time.Now})
	must(t, err)
	h := &house{t: t, store: store, loaders: loaders}
	h.engine = provision.New(provision.Config{
		Store: store, Loaders: loaders.Has, Quirks: pxe.BuiltinQuirks(), Vendor: func(inventory.MAC) string { return "" },
		Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownWait },
		NewID: func() inventory.HostID {
			h.hosts++
			return inventory.HostID(fmt.Sprintf("00000000-0000-7000-8000-%012d", h.hosts))
		},
		Now: time.Now, Log: log, ReportKey: []byte("a key"),
		Renderer: render.New(render.Parts{Provisioners: []machineconfig.Provisioner{ignition.New(), cloudinit.New()}}),
	})
	door := httpboot.New(httpboot.Config{
		Listen: []netip.AddrPort{netip.AddrPortFrom(here, 0)}, Boots: h.engine, Loaders: loaders,
		Artefacts: cache, Now: time.Now, Log: log,
	})
	must(t, door.Listen())
	h.base = pxe.BaseURL(here, int(door.Addrs()[0].Port()))
	done := make(chan error, 2)
	go func() { done <- door.Serve(ctx) }()
	go func() { done <- h.engine.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		must(t, store.Close())
	})
	h.addProfile(cache, dir)
	return h
}

// everyLoader is a folder with a file for each name of the table, so that no architecture is left out of the test.
func everyLoader(t *testing.T, dir string) string {
	t.Helper()
	folder := filepath.Join(dir, "loaders")
	must(t, os.Mkdir(folder, 0o755))
	for _, l := range pxe.Loaders() {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, l.Files[0])), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, l.Files[0]), []byte("loader "+l.Name), 0o644))
	}
	return folder
}

// addProfile makes an image with every role of file, and a profile that gives it to every accepted host.
func (h *house) addProfile(cache *images.Cache, dir string) {
	h.t.Helper()
	r := images.ImportRequest{
		Name: "live", OS: "custom", AllowLocal: true, Arch: inventory.X8664,
		KernelArgs: []string{"console=ttyS0", "root=${file:root.squashfs}", "slipway.report=${report}"},
		Configs: []inventory.ImageConfig{
			{Format: "cloud-init", Version: "22.4.2"}, {Format: "ignition", Version: "3.3.0", InitrdPath: "/config.ign"},
		},
		ConfigArgs: []string{"ds=nocloud;s=${config}"},
	}
	for name, role := range map[string]inventory.Role{"linux": inventory.RoleKernel, "a.gz": inventory.RoleInitrd, "b.gz": inventory.RoleInitrd, "root.squashfs": inventory.RoleRootfs} {
		path := filepath.Join(dir, name)
		must(h.t, os.WriteFile(path, []byte("content of "+name), 0o644))
		r.Files = append(r.Files, images.ImportFile{Role: role, Source: path, Name: name})
	}
	_, err := cache.Import(context.Background(), r, func(images.Progress) {})
	must(h.t, err)
	must(h.t, h.store.Write(context.Background(), func(tx inventory.Tx) error {
		for _, format := range []string{"cloud-init", "ignition"} {
			if err := tx.AcceptRules().Create(&inventory.AcceptRule{Name: format, Selector: "manufacturer=" + format}, time.Now()); err != nil {
				return err
			}
			p := inventory.Profile{Name: format, Image: "live", Selector: "manufacturer=" + format, Format: format, Config: "host: {timezone: Etc/UTC}"}
			if err := tx.Profiles().Create(&p, time.Now()); err != nil {
				return err
			}
		}
		if err := tx.AcceptRules().Create(&inventory.AcceptRule{Name: "ours", Selector: "manufacturer=ACME"}, time.Now()); err != nil {
			return err
		}
		return tx.Profiles().Create(&inventory.Profile{Name: "live", Image: "live", Selector: "manufacturer=ACME"}, time.Now())
	}))
}

func TestEveryNameThatDHCPHandsOutIsServed(t *testing.T) {
	h := newHouse(t)
	served := 0
	for i, a := range pxe.Architectures() {
		for _, class := range []string{"PXEClient", "HTTPClient"} {
			c := pxe.Classify(pxe.Packet{MAC: mac(i), Class60: fmt.Sprintf("%s:Arch:%05d:UNDI:003000", class, a.Code), Arch93: []uint16{uint16(a.Code)}})
			c.Address, c.Server, c.Subnet = here, here, "rack"
			reply := h.engine.Offer(context.Background(), c, h.base)
			switch {
			case reply.File == "":
				continue // no loader exists for it, or it is no network boot: nothing is promised
			case strings.Contains(reply.File, "/"):
				h.get(reply.File)
			default:
				if _, ok := h.loaders.Find(reply.File); !ok {
					t.Errorf("arch %d is told %s, which TFTP does not serve", a.Code, reply.File)
				}
				h.get(h.base + "/boot/" + reply.File)
			}
			served++
		}
	}
	if served < 8 {
		t.Errorf("only %d of the table's rows were given a loader", served)
	}
}

var (
	urlRE  = regexp.MustCompile(`http://[^\s"|]+`)
	echoRE = regexp.MustCompile(`(?m)^echo .*$`)
)

// urls returns the URLs that a script fetches or hands to a kernel; what it only shows does not count.
func urls(script string) []string {
	return urlRE.FindAllString(echoRE.ReplaceAllString(script, ""), -1)
}

func TestEveryURLInAScriptLeadsSomewhere(t *testing.T) {
	h := newHouse(t)
	for i, maker := range []string{"ACME", "Stranger"} {
		least := 1 // where a machine that waits asks again
		if maker == "ACME" {
			least = 6 // kernel, two initrds, root file, report, and where to ask again
		}
		script := h.script(mac(200+i), maker)
		if isImage := strings.Contains(script, "\nkernel "); isImage != (maker == "ACME") {
			t.Fatalf("script for %s:\n%s", maker, script)
		}
		found := urls(script)
		if len(found) < least {
			t.Fatalf("only %d URLs in:\n%s", len(found), script)
		}
		for _, u := range found {
			if strings.HasSuffix(u, "/report") {
				u += "?step=progress" // an argument of the kernel: the booted system says the rest
			}
			h.get(u)
		}
	}
}

// script lets a machine ask for its script as iPXE does.
func (h *house) script(m inventory.MAC, maker string) string {
	h.t.Helper()
	c := pxe.Classify(pxe.Packet{
		MAC: m, Class60: "PXEClient:Arch:00007:UNDI:003010", Arch93: []uint16{7},
		UserClass77: []byte("iPXE"), IPXE175: []byte{0x13, 1, 1},
	})
	c.Address, c.Server, c.Subnet = here, here, "rack"
	reply := h.engine.Offer(context.Background(), c, h.base)
	ask := h.get(reply.File)
	asks := urls(ask)
	if len(asks) != 1 {
		h.t.Fatalf("the first script has %d URLs:\n%s", len(asks), ask)
	}
	return h.get(fill(asks[0], c.MAC, maker))
}

func TestEveryURLOfAConfigurationLeadsSomewhere(t *testing.T) {
	h := newHouse(t)
	script := h.script(mac(210), "cloud-init")
	_, rest, ok := strings.Cut(script, "ds=nocloud;s=")
	if !ok {
		t.Fatalf("no configuration in:\n%s", script)
	}
	folder := strings.Fields(rest)[0]
	for _, name := range []string{"user-data", "meta-data"} {
		h.get(folder + name)
	}
	for _, name := range []string{"vendor-data", "network-config"} { // may be empty; a 404 costs cloud-init 10 s
		if resp, err := http.Get(folder + name); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", name, resp, err)
		}
	}
	if names := h.get(folder); !strings.Contains(names, "user-data") {
		t.Errorf("the folder lists %q", names)
	}
	reports := regexp.MustCompile(`http://[^\s"]*/report/[0-9a-f]+`).FindAllString(h.get(folder+"user-data"), -1)
	if len(reports) != 1 {
		t.Fatalf("it is told to report to %q", reports)
	}
	h.get(reports[0] + "?step=progress")

	script = h.script(mac(211), "ignition")
	archives := regexp.MustCompile(`http://\S*/config\.cpio`).FindAllString(script, -1)
	if len(archives) != 1 || strings.Contains(script, "/config/") {
		t.Fatalf("script:\n%s", script)
	}
	z, err := gzip.NewReader(strings.NewReader(h.get(archives[0])))
	must(t, err)
	if body, err := io.ReadAll(z); err != nil || !bytes.Contains(body, []byte(`"ignition"`)) {
		t.Errorf("archive: %.200q", body)
	}
}

// variableRE finds iPXE's variables.
var variableRE = regexp.MustCompile(`\$\{([a-z0-9-]*/)?([a-z0-9-]+)[^}]*\}`)

// fill puts a machine's values where iPXE would.
func fill(url string, m inventory.MAC, maker string) string {
	values := map[string]string{"mac": m.Hyphens(), "manufacturer": maker, "product": "R640", "serial": "SN1", "buildarch": "x86_64", "platform": "efi"}
	return variableRE.ReplaceAllStringFunc(url, func(v string) string { return values[variableRE.FindStringSubmatch(v)[2]] })
}

// get fetches a URL as boot firmware does and returns the body; anything but 200 with content fails the test.
func (h *house) get(url string) string {
	h.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || len(body) == 0 || resp.ContentLength != int64(len(body)) {
		h.t.Errorf("%s: status %d, %d bytes, length %d, %v: %.200s", url, resp.StatusCode, len(body), resp.ContentLength, err, body)
	}
	return string(body)
}

func mac(n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:00:bb:%02x:%02x", n>>8, n&0xff))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
