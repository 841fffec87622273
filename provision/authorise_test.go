package provision

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/pxe"
)

var cloudInit = inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}

func TestASecretIsNotDeliveredToAConfigurationOfAnOperator(t *testing.T) {
	for name, config := range map[string]string{
		"a field":                  "files: [{path: /etc/x, mode: '0600', secret: 'secret://token'}]\n",
		"a template":               "files: [{path: /etc/x, mode: '0600', text: '{{ secret \"token\" }}'}]\n",
		"a name that is computed":  "files: [{path: /etc/x, mode: '0600', text: '{{ secret (printf \"to%s\" \"ken\") }}'}]\n",
		"a command":                "commands: [{shell: \"echo '{{ secret \\\"token\\\" }}' > /root/copy\"}]\n",
		"a password":               "users: [{name: eve, passwordHash: 'secret://token'}]\n",
		"a secret of the clusters": "files: [{path: /etc/x, mode: '0600', secret: 'secret://cluster-lab'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := configRack(t)
			r.secret("token", canary)
			r.secret("cluster-lab", canary)
			r.configured("live", cloudInit, inventory.Profile{Config: "host: {timezone: Etc/UTC}\n"})
			r.write(func(tx inventory.Tx) error {
				return tx.Layers().Create(&inventory.Layer{Scope: inventory.ScopeGlobal, Config: config}, r.clock)
			})
			m := r.machine(1)
			script, s := m.arrive()
			if strings.Contains(script, "kernel ") {
				t.Errorf("it boots:\n%s", script)
			}
			if got, err := m.ask(s, "user-data"); err == nil || strings.Contains(got, canary) {
				t.Errorf("given all the same: %v", err)
			}
			if got := r.openIssues(); len(got) != 1 || !strings.Contains(got[0].Cause, "may name") {
				t.Errorf("issues %+v", got)
			}
		})
	}
}

func TestASecretIsAuthorisedAgainWhenItIsDelivered(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", cloudInit, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	r.write(func(tx inventory.Tx) error { // after the boot was decided an admin says whom it is for
		x, err := tx.Secrets().Find("token")
		if err != nil {
			return err
		}
		x.Consumers.Pools = []string{"db"}
		return tx.Secrets().Update(&x, r.clock)
	})
	if got, err := m.ask(s, "user-data"); !inventory.IsKind(err, inventory.Forbidden) || strings.Contains(got, canary) {
		t.Fatalf("given all the same: %v", err)
	}
	if got := r.openIssues(); len(got) != 1 || got[0].Type != inventory.IssueSecretRefused {
		t.Errorf("issues %+v", got)
	}
}

func TestADeliveryIsInTheTimelineAndTheAuditWithTheNamesOfItsSecrets(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", cloudInit, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	for range 2 { // tools retry: that is one delivery
		if _, err := m.ask(s, "user-data"); err != nil {
			t.Fatal(err)
		}
	}
	var audits []inventory.Audit
	isTold := false
	r.write(func(tx inventory.Tx) (err error) {
		audits, err = tx.ListAudits(inventory.AuditFilter{Operation: "deliver-secrets"}, inventory.Page{Limit: 10})
		if err != nil {
			return err
		}
		events, err := tx.ListEvents(inventory.EventFilter{HostID: m.host().ID, Kind: inventory.EventConfigSent}, 0, 100)
		for _, e := range events {
			isTold = isTold || strings.Contains(e.Detail, "user-data") && strings.Contains(e.Detail, "with admin-hash, token")
		}
		return err
	})
	if len(audits) != 1 || audits[0].HostID != m.host().ID || !strings.Contains(audits[0].Detail, "given admin-hash, token in user-data") || strings.Contains(audits[0].Detail, canary) {
		t.Errorf("audit %+v", audits)
	}
	if !isTold {
		t.Error("no event names the secrets")
	}
}

func TestAStrangersHEADOfASecretDocumentIsRefused(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", cloudInit, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	peek := pxe.ConfigRequest{Session: s, Source: m.address(), Name: "user-data", IsPeek: true}
	if _, err := m.askAs(peek); err != nil {
		t.Errorf("the machine's own: %v", err)
	}
	m.lease("52:54:00:00:00:99") // another machine has its address now
	if _, err := m.askAs(peek); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a stranger's: %v", err)
	}
	if got := r.openIssues(); len(got) != 1 || got[0].Type != inventory.IssueSecretRefused {
		t.Errorf("issues %+v", got)
	}
}

func TestTheListOfDocumentsHoldsWhatWouldBeGiven(t *testing.T) {
	r, _ := configRack(t)
	r.secret("token", canary)
	r.secret("admin-hash", "$6$salt$hash")
	r.configured("live", cloudInit, inventory.Profile{Config: withSecret})
	m := r.machine(1)
	_, s := m.arrive()
	if got, err := m.ask(s, ""); err != nil || !strings.Contains(got, "user-data\n") || !strings.Contains(got, "meta-data\n") {
		t.Errorf("before: %q, %v", got, err)
	}
	if _, err := m.ask(s, "user-data"); err != nil {
		t.Fatal(err)
	}
	r.clock = r.clock.Add(3 * delivery.AgainFor / 2)
	if got, err := m.ask(s, ""); err != nil || strings.Contains(got, "user-data\n") || !strings.Contains(got, "meta-data\n") {
		t.Errorf("when it is given out no more: %q, %v", got, err)
	}
}
