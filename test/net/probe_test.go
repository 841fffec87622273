package net_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

// classesOf takes the client classes out of a snippet for Kea.
func classesOf(t *testing.T, snippet string) string {
	t.Helper()
	var doc struct {
		Dhcp4 struct {
			Classes json.RawMessage `json:"client-classes"`
		}
	}
	_, text, _ := strings.Cut(snippet, "\n") // its first line is a comment
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v in %s", err, snippet)
	}
	return string(doc.Dhcp4.Classes)
}

// TestSnippetsLeadHere gives other servers what we say they need on a network where we are silent, and asks them what they
// tell machines: all are led here. A server with another boot file is said to lead elsewhere.
func TestSnippetsLeadHere(t *testing.T) {
	l := newLab(t, "dnsmasq", "kea-dhcp4")
	srv, other := l.NS("srv"), l.NS("other")
	l.Wire(srv, "vs", other, "eth0")
	l.In(srv, "ip", "addr", "add", "10.77.1.1/24", "dev", "vs")
	l.In(other, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
	a := &appliance{netlab.NewApplianceOn(l.Lab, &simulate.Net{Server: srv, ServerIf: "vs", Address: netip.MustParsePrefix("10.77.1.1/24")}), l}
	a.Start()
	ctx := t.Context()
	subnets, err := a.API.Subnets.List(ctx, client.Query{})
	if err != nil || len(subnets.Items) != 1 {
		t.Fatalf("%+v, %v", subnets, err)
	}
	n := subnets.Items[0]
	n.Mode = inventory.ModeOff
	if _, err := a.API.Subnets.Put(ctx, n.Name, n); err != nil {
		t.Fatal(err)
	}
	snippet := func(server string) string {
		p, err := a.API.Snippets(ctx, n.Name, server)
		if err != nil || len(p.Items) != 1 {
			t.Fatalf("%s: %+v, %v", server, p, err)
		}
		return p.Items[0].Text
	}
	const pool = "10.77.1.10,10.77.1.200,255.255.255.0,1h"
	for _, c := range []struct {
		name, leads, says string
		run               func() *process
	}{
		{"dnsmasq", pxe.LeadsToUs, "10.77.1.2 sends it here", func() *process { return l.dnsmasq(other, pool, snippet("dnsmasq")) }},
		{"dnsmasq that pings first", pxe.LeadsToUs, "10.77.1.2 sends it here", func() *process { return l.pingingDnsmasq(other, pool, snippet("dnsmasq")) }},
		{"kea", pxe.LeadsToUs, "10.77.1.2 sends it here", func() *process {
			return l.kea(other, "10.77.1.0/24", "10.77.1.10-10.77.1.200", classesOf(t, snippet("kea")))
		}},
		{"dhcpd", pxe.LeadsToUs, "10.77.1.2 sends it here", func() *process { return l.dhcpd(other, snippet("dhcpd")) }},
		{"no boot options", pxe.LeadsNowhere, "10.77.1.2 gives an address and names no boot file", func() *process { return l.dnsmasq(other, pool, "") }},
		{"a boot server of its own", pxe.LeadsAway, "10.77.1.2", func() *process { return l.dnsmasq(other, pool, "dhcp-boot=pxelinux.0,,10.77.1.2\n") }},
	} {
		if _, err := exec.LookPath("dhcpd"); err != nil && c.name == "dhcpd" {
			t.Log("dhcpd is not installed: its snippet is not tried")
			continue
		}
		p := c.run()
		lines, err := a.API.Probe(ctx, n.Name, "")
		if err != nil {
			t.Fatal(err)
		}
		p.Kill(syscall.SIGKILL)
		if len(lines.Items) != len(pxe.ProbeKinds()) {
			t.Errorf("%s: %+v", c.name, lines.Items)
		}
		for _, line := range lines.Items {
			if line.LeadsTo != c.leads || !strings.Contains(line.Detail, c.says) || (line.Hint == "") != (c.leads == pxe.LeadsToUs) {
				t.Errorf("%s: %s leads to %s: %s (%s); offered %+v", c.name, line.Kind, line.LeadsTo, line.Detail, line.Hint, line.Offers)
			}
		}
	}
	// A server that is asked alone and is not there, and an interface that is down, are said to be so.
	lines, err := a.API.Probe(ctx, n.Name, "10.77.1.9")
	if err != nil || len(lines.Items) == 0 || !strings.Contains(lines.Items[0].Detail, "10.77.1.9 does not answer") {
		t.Errorf("%+v, %v", lines.Items, err)
	}
	l.In(srv, "ip", "link", "set", "vs", "down")
	var problem *inventory.Error
	if _, err := a.API.Probe(ctx, n.Name, ""); !errors.As(err, &problem) || problem.Kind != inventory.Unavailable || !strings.Contains(problem.Hint, "slipway subnet interfaces") {
		t.Errorf("with the interface down: %v", err)
	}
}
