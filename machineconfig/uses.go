package machineconfig

import (
	"slipway.dev/slipway/machineconfig/pointer"
)

// exact is the whole JSON pointer of a value whose row has another path.
type exact string

func usesChoice(c *Config, at func(...any)) {
	if c.Boot.RootDevice.Choose != "" {
		at(exact("/boot/rootDevice/choose"))
	}
	for _, d := range c.Storage.Disks {
		if d.Device.Choose != "" {
			at(exact(pointer.Add("/storage/disks", d.Name) + "/device/choose"))
		}
	}
}

func usesMatch(c *Config, at func(...any)) {
	for _, i := range c.Network.Interfaces {
		if i.Match != (PortMatch{}) {
			at(exact(pointer.Add("/network/interfaces", i.Name) + "/match"))
		}
	}
}

func usesDHCP(c *Config, at func(...any)) {
	c.Network.Links(func(list, name string, l *L3) {
		p := pointer.Add("/network/"+list, name)
		if l.DHCP != (DHCP{}) {
			at(exact(p + "/dhcp"))
		}
		if l.LinkLocal != "" {
			at(exact(p + "/linkLocal"))
		}
	})
}

func usesRules(c *Config, at func(...any)) {
	c.Network.Links(func(list, name string, l *L3) {
		p := pointer.Add("/network/"+list, name)
		if len(l.Rules) > 0 {
			at(exact(p + "/rules"))
		}
		for _, r := range l.Routes {
			if r.Table != 0 {
				at(exact(pointer.Add(p+"/routes", r.PathKey()) + "/table"))
			}
		}
	})
}

func usesKeep(c *Config, at func(...any)) {
	for _, d := range c.Storage.Disks {
		for _, p := range d.Partitions {
			if p.Keep {
				at(exact(pointer.Add(pointer.Add("/storage/disks", d.Name)+"/partitions", p.Label) + "/keep"))
			}
		}
	}
	for _, f := range c.Storage.Filesystems {
		if f.Keep {
			at(exact(pointer.Add("/storage/filesystems", f.Device) + "/keep"))
		}
	}
}

func usesVolumes(field string, ok func(LogicalVolume) bool) func(c *Config, at func(...any)) {
	return func(c *Config, at func(...any)) {
		for _, g := range c.Storage.LVM {
			for _, l := range g.LVs {
				if ok(l) {
					at(exact(pointer.Add(pointer.Add("/storage/lvm", g.Name)+"/lvs", l.Name) + "/" + field))
				}
			}
		}
	}
}

func scriptsAt(stage Stage) func(c *Config, at func(...any)) {
	return func(c *Config, at func(...any)) {
		for _, s := range c.Scripts {
			if s.Stage == stage {
				at(exact(pointer.Add("/scripts", s.Name)))
			}
		}
	}
}
