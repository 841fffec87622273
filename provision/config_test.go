package provision

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/capisecret"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/osadapter"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// canary is a secret that must stand nowhere but in the one delivered document.
const canary = "canary-5b1f0c-of-a-secret"

// plain is a box without a lock: what is sealed is reversed, so that a stored secret does not show.
type plain struct{}

func (plain) Open(name string, sealed []byte) ([]byte, error) {
	text, ok := strings.CutPrefix(reverse(string(sealed)), name+":")
	if !ok {
		return nil, inventory.Errorf(inventory.Internal, "secret %s cannot be opened", name)
	}
	return []byte(text), nil
}

func (plain) Seal(name string, value []byte) ([]byte, error) {
	return []byte(reverse(name + ":" + string(value))), nil
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// mint makes tokens of a target that nobody asks.
type mint struct {
	minted  []string // session and node name
	revoked []inventory.SessionID
	fails   error
}

func (m *mint) Mint(_ context.Context, _ inventory.JoinTarget, _ *inventory.Host, s inventory.SessionID, node string) (string, error) {
	if m.fails != nil {
		return "", m.fails
	}
	m.minted = append(m.minted, fmt.Sprintf("%s %s", s, node))
	return "abcdef.0123456789abcdef", nil
}

func (m *mint) Revoke(_ context.Context, s inventory.SessionID) error {
	m.revoked = append(m.revoked, s)
	return nil
}

func (m *mint) RevokeHost(context.Context, inventory.HostID) error { return nil }

// configRack is a rack whose images read configurations.
func configRack(t *testing.T) (*rack, *mint) {
	t.Helper()
	r := newRack(t)
	m := &mint{}
	r.engine.cfg.Renderer = render.New(render.Parts{
		Provisioners:  []machineconfig.Provisioner{ignition.New(), cloudinit.New()},
		Bootstrappers: []machineconfig.Bootstrapper{kubeadm.New(), capisecret.New()},
		Adapt:         osadapter.Apply,
	})
	r.engine.cfg.Secrets, r.engine.cfg.Join, r.engine.cfg.ReportKey = plain{}, m, []byte("key of reports")
	r.engine.outfit()
	return r, m
}

// configured stores an image that reads a format, and a profile for all hosts.
func (r *rack) configured(name string, c inventory.ImageConfig, profile inventory.Profile) {
	r.t.Helper()
	r.image(name, false, "", 0)
	r.write(func(tx inventory.Tx) error {
		i, err := tx.Images().Find("image-" + name)
		if err != nil {
			return err
		}
		i.OS, i.Release, i.Configs, i.ConfigArgs = "debian", "12", []inventory.ImageConfig{c}, []string{"config=${config}", "first_boot"}
		if err := tx.Images().Update(&i, r.clock); err != nil {
			return err
		}
		p, err := tx.Profiles().Find(name)
		profile.SavedByAdmin = true
		if err != nil {
			return err
		}
		profile.Name, profile.Image, profile.Version, profile.Selector = name, i.Name, p.Version, "manufacturer=ACME"
		return tx.Profiles().Update(&profile, r.clock)
	})
}

func (r *rack) secret(name, value string) {
	r.t.Helper()
	r.write(func(tx inventory.Tx) error {
		return tx.Secrets().Create(&inventory.Secret{Name: name, Sealed: []byte(reverse(name + ":" + value))}, r.clock)
	})
}

// lease gives the machine's address to a MAC.
func (m *machine) lease(to inventory.MAC) {
	m.r.t.Helper()
	m.r.write(func(tx inventory.Tx) error {
		if _, err := tx.Subnets().Find("rack"); err != nil {
			s := inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Interface: "eth0"}
			s.FillDefaults()
			if err := tx.Subnets().Create(&s, m.r.clock); err != nil {
				return err
			}
		}
		return tx.SaveLease(inventory.Lease{
			Address: m.address(), Subnet: "rack", MAC: to, State: inventory.LeaseBound,
			StartsAt: m.r.clock, ExpiresAt: m.r.clock.Add(12 * time.Hour),
		})
	})
}

// arrive boots an accepted machine up to its script.
func (m *machine) arrive() (script string, s inventory.SessionID) {
	m.r.t.Helper()
	m.dhcp(pxe.StageFirmware)
	m.script(m.dhcp(pxe.StageIPXE).File)
	m.accept()
	m.lease(m.mac())
	return m.boot()
}

func (m *machine) ask(s inventory.SessionID, name string) (string, error) {
	return m.askAs(pxe.ConfigRequest{Session: s, Source: m.address(), Name: name})
}

func (m *machine) askAs(r pxe.ConfigRequest) (string, error) {
	r.Base = base
	doc, err := m.r.engine.Document(context.Background(), r)
	m.r.settle()
	return string(doc.Data), err
}

// TestAMachineIsToldWhereElseToReport holds for a boot that began at an instance that may be gone when its system is up.
func TestAMachineIsToldWhereElseToReport(t *testing.T) {
	for _, c := range []struct{ base, own, other string }{
		{"http://10.0.0.1", "http://10.0.0.1", "http://10.0.0.2"},
		{"http://10.0.0.1:8081", "http://10.0.0.1:8081", "http://10.0.0.2:8081"},
		{"https://10.0.0.1:8443", "https://10.0.0.1:8443", "https://10.0.0.2:8443"},
	} {
		r, _ := configRack(t)
		r.others = []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("192.168.7.2")} // the second is on another network
		profile := inventory.Profile{Config: "packages: {install: [vim]}\n"}
		r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, profile)
		m := r.machine(1)
		m.lease(m.mac())
		_, s := m.arrive()
		doc, err := m.r.engine.Document(t.Context(), pxe.ConfigRequest{Session: s, Source: m.address(), Name: "user-data", Base: c.base})
		path := "/boot/" + string(s) + "/report/" + r.engine.Admission.ReportKey(s)
		if want := c.own + path + " " + c.other + path + `"`; err != nil || !strings.Contains(string(doc.Data), want) {
			t.Errorf("%s: %v: no %s in\n%s", c.base, err, want, doc.Data)
		}
		if strings.Contains(string(doc.Data), "192.168.7.2") {
			t.Errorf("%s: it is sent to an instance that it may not reach", c.base)
		}
	}
}

const withSecret = `
users:
  - name: admin
    passwordHash: secret://admin-hash
files:
  - path: /etc/token
    mode: "0600"
    secret: secret://token
`

func TestABootIsGivenItsConfigurationOnce(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	script, s := m.arrive()
	if !strings.Contains(script, "config="+base+"/boot/"+string(s)+"/config/ ") || !strings.Contains(script, "first_boot") {
		t.Fatalf("the kernel is not told of its configuration:\n%s", script)
	}
	if strings.Contains(script, canary) {
		t.Fatal("a secret stands in the script")
	}
	got, err := m.ask(s, "user-data")
	if err != nil || !strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(canary))) || !strings.Contains(got, "$6$salt$hash") || strings.Contains(got, "SLIPWAYLATE") {
		t.Fatalf("user-data: %v\n%s", err, got)
	}
	if !strings.Contains(got, base+"/boot/"+string(s)+"/report/") {
		t.Error("the machine is not told where to report")
	}
	if _, err := m.ask(s, "meta-data"); err != nil {
		t.Error(err)
	}
	r.clock = r.clock.Add(time.Minute)
	if again, err := m.ask(s, "user-data"); err != nil || again != got {
		t.Errorf("asked again at once: %v", err)
	}
	r.clock = r.clock.Add(2 * time.Minute)
	if _, err := m.ask(s, "user-data"); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("asked again later: %v", err)
	}
	if _, err := m.ask(s, "meta-data"); err != nil {
		t.Errorf("what is no secret is given again: %v", err)
	}
	if _, err := m.ask(s, "nonsense"); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("a document that is not there: %v", err)
	}
	if r.session(s).Config == "" {
		t.Error("the session does not say what it was given")
	}
	kinds := strings.Join(r.kinds(s), " ")
	if !strings.Contains(kinds, inventory.EventConfigSent) || !strings.Contains(kinds, inventory.EventConfigRefused) {
		t.Errorf("timeline: %s", kinds)
	}
}

func TestOnlyTheHostItselfIsGivenItsSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(m *machine, s inventory.SessionID)
		from    netip.Addr
		isLeft  bool // given all the same
		revokes bool
	}{
		"from another address": {from: netip.MustParseAddr("10.0.0.66")}, // nobody ends a machine's tokens from elsewhere
		"with a lease of another machine": {
			before: func(m *machine, _ inventory.SessionID) { m.lease("52:54:00:bb:bb:bb") }, revokes: true,
		},
		"after the lease has ended": {
			before: func(m *machine, _ inventory.SessionID) {
				m.r.write(func(tx inventory.Tx) error {
					l, err := tx.FindLease(m.address())
					l.ExpiresAt = m.r.clock.Add(-time.Second)
					if err != nil {
						return err
					}
					return tx.SaveLease(l)
				})
			}, revokes: true,
		},
		"when the network says that another card has the address": {
			before: func(m *machine, _ inventory.SessionID) {
				m.r.engine.cfg.Neighbour = func(netip.Addr) (inventory.MAC, bool) { return "52:54:00:bb:bb:bb", true }
				m.r.engine.outfit()
			}, revokes: true,
		},
		"when the network says that it has": {
			before: func(m *machine, _ inventory.SessionID) {
				m.r.engine.cfg.Neighbour = func(netip.Addr) (inventory.MAC, bool) { return m.mac(), true }
				m.r.engine.outfit()
			}, isLeft: true,
		},
		"after the boot has ended": {
			before: func(m *machine, s inventory.SessionID) { m.r.must(m.report(s, pxe.ReportUp)) }, revokes: true,
		},
		"after an hour without a sign": {
			before: func(m *machine, _ inventory.SessionID) { m.r.clock = m.r.clock.Add(61 * time.Minute) }, revokes: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, minted := configRack(t)
			r.secret("token", canary)
			r.secret("admin-hash", "$6$salt$hash")
			r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret})
			m := r.machine(1)
			_, s := m.arrive()
			if c.before != nil {
				c.before(m, s)
			}
			from := m.address()
			if c.from.IsValid() {
				from = c.from
			}
			got, err := m.askAs(pxe.ConfigRequest{Session: s, Source: from, Name: "user-data"})
			if c.isLeft {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || strings.Contains(got, canary) {
				t.Fatalf("given: %s", got)
			}
			if inventory.HintOf(err) == "" {
				t.Errorf("no hint with: %v", err)
			}
			if isRevoked := len(minted.revoked) > 0; isRevoked != c.revokes {
				t.Errorf("tokens revoked: %v, want %v", isRevoked, c.revokes)
			}
			if hasIssue := len(r.openIssues()) == 1 && r.openIssues()[0].Type == inventory.IssueSecretRefused; !hasIssue {
				t.Errorf("issues %+v", r.openIssues())
			}
		})
	}
}

func TestAStrangerAfterTheMachineBurnsTheDocument(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Fatal(err)
	}
	m.lease("52:54:00:bb:bb:bb") // somebody took its address
	if _, err := m.ask(s, "user-data"); err == nil {
		t.Fatal("given to the stranger")
	}
	m.lease(m.mac())
	if _, err := m.ask(s, "user-data"); !inventory.IsKind(err, inventory.Forbidden) || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("given once more: %v", err)
	}
}

func TestAnIsolatedProfileIsGivenAgainAndAgain(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret, Isolated: true})
	m := r.machine(1)
	_, s := m.arrive()
	for range 3 {
		r.clock = r.clock.Add(5 * time.Minute)
		if _, err := m.ask(s, "user-data"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAConfigurationInTheInitrdNeedsNoAddress(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.3.0", InitrdPath: "/config.ign"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	script, s := m.arrive()
	for _, line := range strings.Split(script, "\n") {
		if strings.HasPrefix(line, "kernel ") && (strings.Contains(line, "/config") || !strings.Contains(line, "first_boot") || !strings.Contains(line, "initrd=config.cpio")) {
			t.Errorf("kernel line: %s", line)
		}
	}
	if !strings.Contains(script, "initrd --name config.cpio "+base+"/boot/"+string(s)+"/config.cpio ") {
		t.Errorf("no initrd with the configuration:\n%s", script)
	}
	got, err := m.ask(s, pxe.ConfigArchive)
	if plain := unzip(t, got); err != nil || !strings.HasPrefix(plain, "070701") || !strings.Contains(plain, "config.ign\x00") || !strings.Contains(plain, canary) {
		t.Fatalf("archive: %v, %d bytes", err, len(got))
	}
	r.clock = r.clock.Add(3 * time.Minute)
	if _, err := m.ask(s, pxe.ConfigArchive); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("given again: %v", err)
	}
}

func TestIgnitionIsToldToWaitForAnImageThatReadsTheConfiguration(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.4.0"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	m := r.machine(1)
	_, s := m.arrive()
	ask := func(version string) error {
		_, err := m.askAs(pxe.ConfigRequest{
			Session: s, Source: m.address(), Name: "config.ign",
			Accept: "application/vnd.coreos.ignition+json;version=" + version + ", */*;q=0.1",
		})
		return err
	}
	if err := ask("3.0.0"); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "3.0.0") {
		t.Errorf("an image that reads 3.0.0: %v", err)
	}
	if err := ask("3.6.0"); err != nil {
		t.Errorf("an image that reads 3.6.0: %v", err)
	}
}

func TestWhatCannotBeRenderedIsNeverBooted(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	script, s := m.arrive()
	if strings.Contains(script, "kernel ") || !strings.Contains(script, "there is no secret") || !strings.Contains(script, "slipway secret set") {
		t.Errorf("script:\n%s", script)
	}
	if got := r.openIssues(); len(got) != 1 || got[0].Type != inventory.IssueBootRefused {
		t.Errorf("issues %+v", got)
	}
	if _, err := m.ask(s, "config.ign"); err == nil {
		t.Error("given all the same")
	}
	if _, err := r.engine.Install(context.Background(), m.host().ID, "", ledger.By("a test")); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("armed: %v", err)
	}
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Errorf("mended, and yet:\n%s", script)
	}
	if got := r.openIssues(); len(got) != 0 {
		t.Errorf("issues %+v", got)
	}
}

func TestAReportWithTheKeyMayComeFromAnyAddress(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	m := r.machine(1)
	_, s := m.arrive()
	elsewhere := netip.MustParseAddr("192.0.2.7")
	up := pxe.Report{Step: pxe.ReportUp}
	if err := r.engine.Report(context.Background(), s, elsewhere, "", up); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("without a key: %v", err)
	}
	if err := r.engine.Report(context.Background(), s, elsewhere, r.engine.ReportKey("other"), up); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("with the key of another boot: %v", err)
	}
	r.must(r.engine.Report(context.Background(), s, elsewhere, r.engine.ReportKey(s), up))
	if h := m.host(); h.State != inventory.Active {
		t.Errorf("state %s", h.State)
	}
}

func TestAHostStaysWithItsPinnedRevision(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	m := r.machine(1)
	_, s := m.arrive()
	first := r.session(s).Config
	var pinned int
	r.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("live")
		if err != nil {
			return err
		}
		pinned = p.Revision
		p.Config = "host: {timezone: Asia/Tokyo}"
		return tx.Profiles().Update(&p, r.clock)
	})
	_, s = m.boot()
	if got := r.session(s).Config; got == first {
		t.Fatal("an edit changes nothing")
	}
	r.write(func(tx inventory.Tx) error {
		h, err := tx.FindHostByMAC(m.mac())
		if err != nil {
			return err
		}
		h.Profile, h.ProfileRevision = "live", pinned
		return tx.UpdateHost(&h, r.clock)
	})
	_, s = m.boot()
	if got := r.session(s).Config; got != first {
		t.Error("the pinned revision renders something else than it did")
	}
}

func TestSavingSaysWhatItWouldChange(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	for n := range 5 {
		m := r.machine(n)
		m.dhcp(pxe.StageFirmware)
		m.script(m.dhcp(pxe.StageIPXE).File)
		m.accept()
	}
	var p inventory.Profile
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		p, err = tx.Profiles().Find("live")
		return err
	}))
	for _, c := range []struct {
		name, config             string
		changed, failed          int
		finding, source, inFirst string
	}{
		{"the same", p.Config, 0, 0, "", "", ""},
		{"another time zone", "host: {timezone: Asia/Tokyo}", 5, 0, "", "", "+timezone: Asia/Tokyo"},
		{"an unknown key", "host: {timezne: Asia/Tokyo}", 0, 5, "timezne", "profile live:1:8", ""},
		{"what the format cannot say", "storage: {lvm: [{name: data, devices: [/dev/sdb]}]}", 0, 5, "LVM", "profile live", ""},
		{"a template that names what is not there", "files: [{path: /etc/motd, text: '{{ .Host.Nme }}'}]", 0, 5, "Nme", "profile live", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.Config = c.config
			i, err := r.engine.CheckProfile(context.Background(), &p)
			r.must(err)
			if i.HostN != 5 || i.ChangedN != c.changed || i.FailedN != c.failed {
				t.Fatalf("%+v", i)
			}
			if (i.Err() != nil) != (c.failed > 0) {
				t.Errorf("may it be saved? %v", i.Err())
			}
			if c.inFirst != "" && !strings.Contains(i.Hosts[0].Diff, c.inFirst) {
				t.Errorf("diff:\n%s", i.Hosts[0].Diff)
			}
			if c.finding != "" && !(strings.Contains(fmt.Sprint(i.Findings), c.finding) && strings.Contains(fmt.Sprint(i.Findings), c.source)) {
				t.Errorf("findings %v", i.Findings)
			}
		})
	}
	i, err := r.engine.CheckLayer(context.Background(), &inventory.Layer{Scope: inventory.ScopeGlobal, Config: "host: {locale: de_DE.UTF-8}"})
	if err != nil || i.HostN != 5 || i.ChangedN != 5 {
		t.Errorf("a global layer: %+v, %v", i, err)
	}
	i, err = r.engine.CheckProfile(context.Background(), &inventory.Profile{Name: "new", Image: "image-live", Config: "nonsense: 1"})
	if err != nil || i.HostN != 0 || i.Err() == nil {
		t.Errorf("a profile without hosts: %+v, %v", i, err)
	}
}

const joins = `
bootstrap: {kind: kubeadm, target: prod, role: %s, install: none}
`

func TestAMachineIsMintedATokenWhenItAsks(t *testing.T) {
	r, minted := configRack(t)
	r.target(t)
	r.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: fmt.Sprintf(joins, "worker")})
	m := r.machine(1)
	_, s := m.arrive()
	if len(minted.minted) != 0 {
		t.Fatal("a token was minted before the machine asked")
	}
	minted.fails = inventory.Errorf(inventory.Unavailable, "prod does not answer").WithHint("start it")
	if _, err := m.ask(s, "config.ign"); !inventory.IsKind(err, inventory.Unavailable) {
		t.Fatalf("without the cluster: %v", err)
	}
	minted.fails = nil
	got, err := m.ask(s, "config.ign")
	if err != nil || !strings.Contains(got, "abcdef.0123456789abcdef") {
		t.Fatalf("no token: %v", err)
	}
	if len(minted.minted) != 1 || minted.minted[0] != string(s)+" "+m.host().Name {
		t.Errorf("minted %v", minted.minted)
	}
}

// target stores a join target whose tokens the rack's mint makes.
func (r *rack) target(t *testing.T) {
	t.Helper()
	pki, err := kubeadm.NewPKI(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), testRand{})
	if err != nil {
		t.Fatal(err)
	}
	r.secret("kubeconfig", "{}")
	var b strings.Builder
	for name, text := range pki {
		fmt.Fprintf(&b, "%s: %q\n", name, text)
	}
	r.secret("pki", b.String())
	r.write(func(tx inventory.Tx) error {
		return tx.JoinTargets().Create(&inventory.JoinTarget{
			Name: "prod", Endpoint: "10.0.0.9:6443", Kubernetes: "1.35.0", CA: pki["ca.crt"], Kubeconfig: "kubeconfig", PKI: "pki",
		}, r.clock)
	})
}

func TestControlPlanesComeOneAtATime(t *testing.T) {
	r, _ := configRack(t)
	r.target(t)
	r.configured("first", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: fmt.Sprintf(joins, "init")})
	r.configured("plane", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: fmt.Sprintf(joins, "control-plane")})
	r.configured("worker", inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, inventory.Profile{Config: fmt.Sprintf(joins, "worker")})
	pinned := func(n int, profile string) *machine {
		m := r.machine(n)
		m.dhcp(pxe.StageFirmware)
		r.write(func(tx inventory.Tx) error {
			h, err := tx.FindHostByMAC(m.mac())
			if err != nil {
				return err
			}
			h.Profile = profile
			return tx.UpdateHost(&h, r.clock)
		})
		m.accept()
		m.lease(m.mac())
		return m
	}
	first, second, third, rival, worker := pinned(1, "first"), pinned(2, "plane"), pinned(3, "plane"), pinned(4, "first"), pinned(5, "worker")
	boots := func(m *machine, want bool, why string) inventory.SessionID {
		t.Helper()
		script, s := m.boot()
		if strings.Contains(script, "kernel ") != want || !strings.Contains(script, why) {
			t.Fatalf("script:\n%s", script)
		}
		return s
	}
	boots(first, true, "")
	boots(first, true, "") // it starts over: its turn stays
	boots(second, false, "one at a time")
	boots(rival, false, "first control plane")
	boots(worker, true, "")
	s := boots(first, true, "")
	r.must(first.report(s, pxe.ReportUp))
	s = boots(second, true, "")
	boots(third, false, "one at a time")
	boots(rival, false, "first control plane")
	r.must(second.report(s, pxe.ReportFailed))
	boots(third, false, "one at a time")
	if _, err := r.engine.Release(context.Background(), second.host().ID, ledger.By("a test")); err != nil {
		t.Fatal(err)
	}
	boots(third, true, "")
	if n := len(r.openIssues()); n != 1 { // the rival's alone: to wait for one's turn is no fault
		t.Errorf("%d issues: %+v", n, r.openIssues())
	}
}

func unzip(t *testing.T, data string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// testRand is no chance at all.
type testRand struct{}

func (testRand) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i*7 + 3)
	}
	return len(b), nil
}

// cloud-init, for one, sets a static network up before it fetches what remains.
func TestAMachineMayAskFromTheAddressThatItsConfigurationGivesIt(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, inventory.Profile{
		Config: "network: {interfaces: [{name: eno1, mac: boot, addresses: [10.0.0.77/24]}]}\nfiles: [{path: /etc/token, secret: secret://token}]",
	})
	m := r.machine(1)
	_, s := m.arrive()
	from := func(a string, heard inventory.MAC) error {
		r.engine.cfg.Neighbour = func(netip.Addr) (inventory.MAC, bool) { return heard, heard != "" }
		r.engine.outfit()
		_, err := m.askAs(pxe.ConfigRequest{Session: s, Source: netip.MustParseAddr(a), Name: "user-data"})
		return err
	}
	if err := from("10.0.0.77", ""); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("while nobody vouches for it: %v", err)
	}
	if err := from("10.0.0.77", "52:54:00:bb:bb:bb"); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("while another card has it: %v", err)
	}
	if err := from("10.0.0.78", m.mac()); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("from an address that it does not give: %v", err)
	}
	if err := from("10.0.0.77", m.mac()); err != nil {
		t.Errorf("while its own card has it: %v", err)
	}
}

// A boot goes on with the configuration that it was given, and with the address in it.
func TestAnEditedProfileTakesNoAddressFromABootThatRuns(t *testing.T) {
	r, _ := configRack(t)
	image := inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}
	profile := inventory.Profile{Config: "network: {interfaces: [{name: eno1, mac: boot, addresses: [10.0.0.77/24]}]}"}
	r.configured("live", image, profile)
	m := r.machine(1)
	_, s := m.arrive()
	r.engine.cfg.Neighbour = func(netip.Addr) (inventory.MAC, bool) { return "", false }
	r.engine.outfit()
	r.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("live")
		if err != nil {
			return err
		}
		p.Config = strings.ReplaceAll(p.Config, "10.0.0.77", "10.0.0.79")
		return tx.Profiles().Update(&p, r.clock)
	})
	from := func(a string) error {
		return r.engine.Report(t.Context(), s, netip.MustParseAddr(a), "", pxe.Report{Step: pxe.ReportProgress})
	}
	if err := from("10.0.0.79"); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("from the address of the next boot: %v", err)
	}
	if err := from("10.0.0.77"); err != nil {
		t.Errorf("from its own: %v", err)
	}
}

func TestAMachineThatStartsOverIsGivenItsConfigurationAgain(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Fatal(err)
	}
	r.clock = r.clock.Add(5 * time.Minute)
	script := m.script(base + "/boot/script") // without any DHCP of ours before it
	again := sessionIn(strings.Fields(script[strings.Index(script, "config=")+len("config="):])[0])
	if again == s || again == "" {
		t.Fatalf("the same boot:\n%s", script)
	}
	if _, err := m.ask(again, "user-data"); err != nil {
		t.Error(err)
	}
}

func TestTakingAConfigurationAwayIsAChange(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	m := r.machine(1)
	m.arrive()
	i, err := r.engine.CheckProfile(context.Background(), &inventory.Profile{Name: "live", Image: "image-live", Selector: "manufacturer=ACME"})
	if err != nil || i.HostN != 1 || i.ChangedN != 1 || !strings.Contains(i.Hosts[0].Diff, "-timezone: Europe/Berlin") {
		t.Errorf("%+v %v", i, err)
	}
	i, err = r.engine.CheckProfile(context.Background(), &inventory.Profile{
		Name: "live", Image: "image-live", Selector: "manufacturer=ACME", Config: "files: [{path: /x, text: a, $remove: [mode]}]\nhost: {$remove: [locale]}",
	})
	if err != nil || len(i.Findings) == 0 {
		t.Errorf("warnings are lost: %+v %v", i, err)
	}
}

func TestAConfigurationIsFoundAsEC2LaysItOut(t *testing.T) {
	r, _ := configRack(t)
	r.configured("live", inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}, inventory.Profile{Config: "host: {timezone: Europe/Berlin}"})
	m := r.machine(1)
	_, s := m.arrive()
	plain, err := m.ask(s, "user-data")
	r.must(err)
	for name, want := range map[string]string{
		"ec2/2009-04-04/meta-data/hostname": m.host().Name, "ec2/latest/user-data": plain,
	} {
		if got, err := m.ask(s, name); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := m.ask(s, "ec2/latest/dynamic/instance-identity"); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("what is not there: %v", err)
	}
}

// rendering counts the transactions in which a configuration was rendered.
type rendering struct {
	inventory.Store
	now     func() *configuration.Rendered
	insideN int
}

func (s *rendering) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	before := s.now()
	err := s.Store.Write(ctx, fn)
	if s.now() != before {
		s.insideN++
	}
	return err
}

func TestAConfigurationIsRenderedBeforeTheTransactionThatDecides(t *testing.T) {
	r, _ := configRack(t)
	r.configured("web", inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, inventory.Profile{Config: "host: {timezone: Etc/UTC}\n"})
	m := r.machine(1)
	m.boot()
	m.accept()
	id := m.host().ID
	store := &rendering{Store: r.engine.cfg.Store, now: func() *configuration.Rendered { return r.engine.Rendered.Of(id) }}
	r.engine.cfg.Store = store
	r.engine.outfit()
	for range 2 {
		before := store.now()
		if script, _ := m.boot(); !strings.Contains(script, "config=") {
			t.Fatalf("script:\n%s", script)
		}
		if store.now() == before {
			t.Fatal("nothing was rendered")
		}
		m.uuid = "4c4c4544-0000-4000-8000-999999999999" // what it says of itself is part of the rendering
	}
	if store.insideN != 0 {
		t.Errorf("%d transactions held up all others with a rendering", store.insideN)
	}
}
