package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// hostBMC has no flag for the password itself: a command line is seen by everybody on the machine, and kept by shells.
type hostBMC struct {
	Host         string            `arg:""`
	Driver       *string           `help:"redfish, ipmi, libvirt, wol, webhook, manual or fake." placeholder:"DRIVER"`
	Address      *string           `help:"Where it is: https://10.0.0.5 for redfish and webhook, 10.0.0.5 for ipmi, qemu:///system for libvirt." placeholder:"ADDRESS"`
	Username     *string           `aliases:"user" help:"Account that is used." placeholder:"NAME"`
	PasswordFile *string           `help:"File with its password; - is standard input, or a question at a terminal." placeholder:"FILE"`
	System       *string           `help:"Which machine behind the address it is: a Redfish system, a libvirt domain." placeholder:"ID"`
	Insecure     *bool             `negatable:"" help:"Accept any certificate; --fingerprint is the better way."`
	Fingerprint  *string           `help:"SHA-256 of its certificate." placeholder:"HEX"`
	MAC          *string           `name:"mac" help:"MAC of the controller's own port." placeholder:"MAC"`
	Option       map[string]string `help:"Option of the driver; repeat for more, KEY= takes one away." placeholder:"KEY=VALUE" mapsep:"none"`
	Delete       bool              `help:"Forget how it is powered: a person does that from then on."`
	Test         bool              `help:"Connect with it and say what fails: name, connection, certificate, login or rights. Nothing is saved."`
}

// Run shows or says how a host is powered.
func (c *hostBMC) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	given := *c
	given.Host, given.Delete, given.Test = "", false, false
	isGiven := !reflect.ValueOf(given).IsZero()
	switch {
	case c.Delete && (isGiven || c.Test):
		return usage("give --delete alone", "either say how it is powered or forget that")
	case c.Delete:
		return api.Hosts.DeleteBMC(s.ctx, c.Host)
	case !isGiven && !c.Test:
		return c.show(s, api)
	}
	b, err := api.Hosts.BMC(s.ctx, c.Host)
	if err != nil && !isNotFound(err) {
		return err
	}
	if err != nil {
		if _, err := api.Hosts.Get(s.ctx, c.Host); err != nil {
			return err
		}
		if c.Driver == nil {
			return usage("use one of "+fmt.Sprint(inventory.BMCDrivers()), "--driver is missing: nothing is known yet of how %s is powered", c.Host)
		}
	}
	in := client.SetBMC{
		Driver: b.Driver, Address: b.Address, Username: b.Username, System: b.System, InsecureSkipVerify: b.InsecureSkipVerify,
		Fingerprint: b.Fingerprint, MAC: b.MAC, Options: b.Options,
	}
	if err := c.apply(s, &in); err != nil {
		return err
	}
	if c.Test {
		k, err := api.Hosts.TestBMC(s.ctx, c.Host, in)
		if err != nil {
			return err
		}
		return s.showBMCCheck(k)
	}
	stored, err := api.Hosts.SetBMC(s.ctx, c.Host, in)
	if err != nil {
		return err
	}
	return s.stored(stored)
}

// apply lays the flags over what is stored. Another driver begins anew: what was said is not true of it.
func (c *hostBMC) apply(s *session, in *client.SetBMC) error {
	if c.Driver != nil && inventory.BMCDriver(*c.Driver) != in.Driver {
		*in = client.SetBMC{Driver: inventory.BMCDriver(*c.Driver)}
	}
	set(&in.Address, c.Address)
	set(&in.Username, c.Username)
	set(&in.System, c.System)
	set(&in.InsecureSkipVerify, c.Insecure)
	set(&in.Fingerprint, c.Fingerprint)
	set(&in.MAC, (*inventory.MAC)(c.MAC))
	for k, v := range c.Option {
		if in.Options == nil {
			in.Options = map[string]string{}
		}
		if in.Options[k] = v; v == "" {
			delete(in.Options, k)
		}
	}
	if c.PasswordFile == nil {
		return nil
	}
	var err error
	if in.Password, err = s.readSecret("password of the controller", *c.PasswordFile); err == nil && in.Password == "" {
		err = inventory.Errorf(inventory.Invalid, "the password is empty").WithHint("without --password-file, the stored one stays")
	}
	return err
}

// readSecret reads a secret from a file, or for - from standard input, or from who sits at a terminal. The line end of
// one line, which editors and echo add, is not part of it.
func (s *session) readSecret(what, file string) (string, error) {
	if f, ok := s.in.(*os.File); ok && file == "-" && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(s.err, "%s: ", plain(what))
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(s.err)
		if err != nil {
			return "", &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read the " + what + ": " + err.Error()}
		}
		return string(b), nil
	}
	text, err := s.readText(file)
	if line := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"); !strings.Contains(line, "\n") {
		text = line
	}
	return text, err
}

func (c *hostBMC) show(s *session, api *client.Client) error {
	b, err := api.Hosts.BMC(s.ctx, c.Host)
	if err != nil {
		return err
	}
	return s.show(b, func(t *tableWriter) {
		t.field("host", b.Host)
		t.field("driver", string(b.Driver))
		t.field("address", b.Address)
		t.field("system", b.System)
		t.field("user", b.Username)
		if b.InsecureSkipVerify {
			t.field("certificate", "any is accepted")
		}
		t.field("fingerprint", b.Fingerprint)
		t.field("mac", string(b.MAC))
		for _, k := range slices.Sorted(maps.Keys(b.Options)) {
			t.field("option", k+"="+b.Options[k])
		}
		t.field("power", strings.TrimSpace(powerText(b.Power)+" "+prefixed("read ", ago(b.PowerAt, time.Now()))))
		t.field("reachable", yesNo(b.IsReachable))
		t.field("because", b.Reason)
		t.field("controller", strings.Join(strings.Fields(b.Vendor+" "+b.Model+" "+b.Firmware), " "))
		t.field("can", strings.Join(b.Capabilities, " "))
		t.field("asked", timeText(b.CheckedAt))
		if l := b.LastCheck; l != nil {
			t.field("checked", timeText(l.At)+" by "+l.By+", "+map[bool]string{true: "good", false: "not good"}[l.IsGood]+": "+l.Detail)
		}
	})
}

type hostSensors struct {
	Host string `arg:""`
}

// Run shows what a controller measures.
func (c *hostSensors) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	x, err := api.Hosts.Sensors(s.ctx, c.Host)
	if err != nil {
		return err
	}
	defer s.sayLeftOut(x.LeftOut)
	return s.show(x, func(t *tableWriter) {
		t.row("STATUS", "SENSOR", "KIND", "VALUE")
		for _, r := range x.Items {
			t.row(r.Status, r.Name, r.Kind, strings.TrimSpace(fmt.Sprintf("%g %s", r.Value, r.Unit)))
		}
		if x.Health != "" {
			t.row(x.Health, "health, as the controller sums it up")
		}
	})
}

// sayLeftOut says beside the answer what is not in it.
func (s *session) sayLeftOut(texts []string) {
	for _, text := range texts {
		s.say("left out: %s", text)
	}
}

type hostBMCLog struct {
	Host  string `arg:""`
	Limit int    `default:"100" help:"At most so many entries, newest first."`
	Clear bool   `help:"Empty it instead."`
}

// Run shows a controller's event log.
func (c *hostBMCLog) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if c.Clear {
		return api.Hosts.ClearBMCLog(s.ctx, c.Host)
	}
	list, err := api.Hosts.BMCLog(s.ctx, c.Host, c.Limit)
	if err != nil {
		return err
	}
	defer s.sayLeftOut(list.LeftOut)
	return s.show(list.Items, func(t *tableWriter) {
		t.row("ID", "AT", "SEVERITY", "MESSAGE")
		for _, e := range list.Items {
			t.row(e.ID, e.At, e.Severity, e.Message)
		}
	})
}

type hostBMCUsers struct {
	Host         string `arg:""`
	Add          string `help:"Add an administrator, or give this account a new password; with --password-file." placeholder:"NAME"`
	Remove       string `help:"Delete this account." placeholder:"NAME"`
	PasswordFile string `help:"File with the password; - is standard input, or a question at a terminal." placeholder:"FILE" default:"-"`
}

// Run lists or changes a controller's accounts.
func (c *hostBMCUsers) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	var list client.Page[client.BMCUser]
	switch {
	case c.Add != "" && c.Remove != "":
		return usage("one account at a time", "either add an account or remove one")
	case c.Add != "":
		password, err := s.readSecret("password of "+c.Add, c.PasswordFile)
		if err != nil {
			return err
		}
		list, err = api.Hosts.SetBMCUser(s.ctx, c.Host, c.Add, password)
		if err != nil {
			return err
		}
	case c.Remove != "":
		list, err = api.Hosts.RemoveBMCUser(s.ctx, c.Host, c.Remove)
	default:
		list, err = api.Hosts.BMCUsers(s.ctx, c.Host)
	}
	if err != nil {
		return err
	}
	return s.show(list.Items, func(t *tableWriter) {
		t.row("ID", "NAME", "ROLE", "ENABLED")
		for _, u := range list.Items {
			t.row(u.ID, u.Name, u.Role, yesNo(u.Enabled))
		}
	})
}

type hostBMCCheck struct {
	Host string `arg:""`
}

// Run looks whether a controller does what we need; anything that is not good is a failure.
func (c *hostBMCCheck) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	k, err := api.Hosts.CheckBMC(s.ctx, c.Host)
	if err != nil {
		return err
	}
	return s.showBMCCheck(k)
}

// showBMCCheck shows what was looked at; anything that is not good is a failure.
func (s *session) showBMCCheck(k client.BMCCheck) error {
	err := s.show(k, func(t *tableWriter) {
		t.row("STATUS", "CHECK", "DETAIL", "HINT")
		for _, r := range k.Results {
			status := "ok"
			if !r.IsGood {
				status = "error"
			}
			t.row(status, r.Name, r.Detail, r.Hint)
		}
		if len(k.Capabilities) > 0 {
			t.row("ok", "can", strings.Join(k.Capabilities, " "))
		}
	})
	if err == nil && !k.IsGood {
		return errSaid
	}
	return err
}

type hostBMCRotate struct {
	Host string   `arg:""`
	Wait waitFlag `help:"Wait until the controller knows it; --wait=5m waits no longer than that."`
}

// Run gives a controller's account a new password.
func (c *hostBMCRotate) Run(s *session) error {
	f, err := s.follow(nil)
	if err != nil {
		return err
	}
	o, err := f.api.Hosts.RotateBMC(s.ctx, c.Host)
	if err != nil {
		return err
	}
	if c.Wait == 0 {
		if s.globals.Output == "table" {
			s.say("operation %s; slipway operation wait %s follows it", o.ID, o.ID)
		}
		return s.stored(o)
	}
	if o, err = s.waitOperation(f, o, c.Wait); err != nil {
		return err
	}
	return s.stored(o)
}
