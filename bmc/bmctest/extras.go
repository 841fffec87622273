package bmctest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

func (c *Case) boot(t *testing.T) {
	open := func(t *testing.T) (*trial, bmc.Booter) {
		tr := c.open(t, inventory.PowerOff)
		b, ok := tr.d.(bmc.Booter)
		if !ok {
			t.Skip("this driver does not set the boot device")
		}
		return tr, b
	}
	for _, want := range c.Boots {
		t.Run(fmt.Sprintf("%s %s persistent %v is set, read back and taken back", want.Device, want.Mode, want.IsPersistent), func(t *testing.T) {
			tr, b := open(t)
			for range 2 {
				tr.ok("set boot", b.SetBoot(tr.ctx(), want))
				tr.awaitBoot(b, want)
			}
			tr.ok("set no override", b.SetBoot(tr.ctx(), bmc.Boot{Device: bmc.None}))
			tr.awaitBoot(b, bmc.Boot{Device: bmc.None})
		})
	}
	for _, bad := range c.RefusedBoots {
		t.Run(fmt.Sprintf("%s %s persistent %v is refused", bad.Device, bad.Mode, bad.IsPersistent), func(t *testing.T) {
			tr, b := open(t)
			before, err := b.Boot(tr.ctx())
			tr.ok("read boot", err)
			tr.is("set boot", b.SetBoot(tr.ctx(), bad), inventory.Invalid)
			tr.awaitBoot(b, before)
		})
	}
	t.Run("a device that does not exist is invalid", func(t *testing.T) {
		tr, b := open(t)
		tr.is("set boot", b.SetBoot(tr.ctx(), bmc.Boot{Device: "tape"}), inventory.Invalid)
	})
	if !c.UsesUpBoot {
		return
	}
	for _, want := range c.Boots {
		t.Run(fmt.Sprintf("switching on uses up %s %s unless it is persistent (%v)", want.Device, want.Mode, want.IsPersistent), func(t *testing.T) {
			tr, b := open(t)
			tr.ok("set boot", b.SetBoot(tr.ctx(), want))
			if !tr.order(bmc.On) {
				return
			}
			tr.await("on", inventory.PowerOn)
			after := want
			if !want.IsPersistent {
				after = bmc.Boot{Device: bmc.None}
			}
			tr.awaitBoot(b, after)
			tr.ok("set no override", b.SetBoot(tr.ctx(), bmc.Boot{Device: bmc.None}))
		})
	}
}

// awaitBoot reads the override until it is as wanted: some controllers take it in only after a while. What want leaves
// open is not compared.
func (t *trial) awaitBoot(b bmc.Booter, want bmc.Boot) {
	t.Helper()
	for end := time.Now().Add(t.c.Within); ; time.Sleep(t.c.Every) {
		got, err := b.Boot(t.ctx())
		t.sane("read boot", err)
		same := err == nil && got.Device == want.Device
		if want.Device != bmc.None {
			same = same && got.IsPersistent == want.IsPersistent &&
				(want.Mode == "" || got.Mode == want.Mode) && (want.URI == "" || got.URI == want.URI)
		}
		if same {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the boot override reads %+v (%v); want %+v", got, err, want)
		}
	}
}

func (c *Case) media(t *testing.T) {
	if c.MediaURL == "" {
		t.Skip("no image was given for the virtual drive")
	}
	tr := c.open(t, inventory.PowerOff)
	m, ok := tr.d.(bmc.MediaMounter)
	if !ok {
		t.Skip("this driver has no virtual media")
	}
	expect := func(want string) {
		t.Helper()
		got, err := m.Media(tr.ctx())
		tr.ok("read media", err)
		if got != want {
			t.Fatalf("the virtual drive holds %q; want %q", got, want)
		}
	}
	for range 2 {
		tr.ok("insert", m.InsertMedia(tr.ctx(), c.MediaURL))
		expect(c.MediaURL)
	}
	for range 2 {
		tr.ok("eject", m.EjectMedia(tr.ctx()))
		expect("")
	}
	tr.is("insert what is no URL", m.InsertMedia(tr.ctx(), "\x00not a url"), inventory.Invalid)
}

func (c *Case) extras(t *testing.T) {
	tr := c.open(t, inventory.PowerOn)
	if l, ok := tr.d.(bmc.Locator); ok {
		for _, on := range []bool{true, true, false, false} {
			tr.ok(fmt.Sprintf("locate %v", on), l.Locate(tr.ctx(), on))
		}
	}
	if s, ok := tr.d.(bmc.SensorReader); ok {
		all, err := s.Sensors(tr.ctx())
		tr.ok("sensors", err)
		for _, one := range all {
			if one.Name == "" || !slices.Contains([]string{"ok", "warning", "critical", "absent"}, one.Status) {
				t.Errorf("sensor %+v has no name, or a status of its own", one)
			}
			tr.clean("sensor", one.Name+one.Kind+one.Unit)
		}
		health, err := s.Health(tr.ctx())
		tr.ok("health", err)
		if !slices.Contains([]string{"ok", "warning", "critical", ""}, health) {
			t.Errorf("health is %q", health)
		}
	}
	if l, ok := tr.d.(bmc.LogReader); ok {
		all, err := l.Log(tr.ctx(), 3)
		tr.ok("log", err)
		if len(all) > 3 {
			t.Errorf("%d log entries; 3 were asked for", len(all))
		}
		for _, one := range all {
			tr.clean("log entry", one.ID+one.Message+one.Severity)
			if _, err := time.Parse(time.RFC3339, one.At); one.At != "" && err != nil {
				t.Errorf("log entry %s: time %q is not RFC 3339", one.ID, one.At)
			}
		}
	}
	if i, ok := tr.d.(bmc.InventoryReader); ok {
		inv, err := i.Inventory(tr.ctx())
		tr.ok("inventory", err)
		if inv.Hardware.Source != "bmc" {
			t.Errorf("the inventory's source is %q; want bmc", inv.Hardware.Source)
		}
		tr.clean("inventory", inv.Vendor+inv.Model+inv.Firmware+inv.Hardware.System.Serial+inv.Hardware.System.Product)
	}
}

func (t *trial) clean(what, text string) {
	t.Helper()
	if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1<<16 {
		t.Errorf("%s: %q is not clean", what, text)
	}
}

func (c *Case) users(t *testing.T) {
	if c.SkipsUsers {
		t.Skip("the controller's accounts are not the test's")
	}
	tr := c.open(t, inventory.PowerOff)
	u, ok := tr.d.(bmc.UserManager)
	if !ok {
		t.Skip("this driver does not manage accounts")
	}
	tr.ok("check credentials", u.CheckCredentials(tr.ctx()))
	names := func() (all []string) {
		list, err := u.Users(tr.ctx())
		tr.ok("list users", err)
		for _, one := range list {
			all = append(all, one.Name)
		}
		return all
	}
	const name, password = "slipway-test", "Abc-123-xyz-9"
	tr.ok("create", u.CreateUser(tr.ctx(), name, password))
	if all := names(); !slices.Contains(all, name) {
		t.Fatalf("users are %v after %s was created", all, name)
	}
	tr.is("create twice", u.CreateUser(tr.ctx(), name, password), inventory.Conflict)
	tr.ok("set password", u.SetPassword(tr.ctx(), name, password+"x"))
	tr.ok("delete", u.DeleteUser(tr.ctx(), name))
	if all := names(); slices.Contains(all, name) {
		t.Fatalf("users are %v after %s was deleted", all, name)
	}
	tr.is("delete twice", u.DeleteUser(tr.ctx(), name), inventory.NotFound)
	tr.is("set the password of nobody", u.SetPassword(tr.ctx(), name, password), inventory.NotFound)
}

func (c *Case) console(t *testing.T) {
	if c.SkipsConsole {
		t.Skip("this machine has no console")
	}
	tr := c.open(t, inventory.PowerOn)
	k, ok := tr.d.(bmc.Console)
	if !ok {
		t.Skip("this driver has no console")
	}
	for range 2 { // the first session must leave nothing behind
		rw, err := k.Console(tr.ctx())
		tr.ok("open console", err)
		read := make(chan struct{})
		go func() { defer close(read); _, _ = rw.Read(make([]byte, 1)); _, _ = rw.Read(make([]byte, 1<<16)) }()
		if _, err := rw.Write([]byte("\r")); err != nil {
			t.Errorf("write to the console: %v", err)
		}
		tr.ok("close console", rw.Close())
		tr.bounded("a read after the console was closed", c.Within, func() { <-read })
	}
}
