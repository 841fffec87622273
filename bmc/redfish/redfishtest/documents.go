package redfishtest

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
)

const v1 = "/redfish/v1"

// quiet takes in what net/http has to say of dropped connections.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func ref(path string) doc { return doc{"@odata.id": path} }

func refs(paths ...string) []doc {
	all := []doc{}
	for _, p := range paths {
		all = append(all, ref(p))
	}
	return all
}

func (s *Server) systemPath(b *box) string { return v1 + "/Systems/" + b.ID }
func (s *Server) managerPath() string      { return v1 + "/Managers/" + s.o.Dialect.ManagerID }
func (s *Server) chassisPath() string      { return v1 + "/Chassis/" + s.o.Dialect.ChassisID }

// show answers a GET.
func (s *Server) show(w http.ResponseWriter, r *http.Request, path string) {
	tree := s.tree()
	make, ok := tree[path]
	if !ok {
		complain(w, http.StatusNotFound, "Base.1.8.ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
		return
	}
	d := make()
	d["@odata.id"] = path
	if members, ok := d["Members"].([]doc); ok {
		d["Members@odata.count"] = len(members)
		if s.o.Dialect.Expands && r.URL.Query().Get("$expand") == "." {
			for i, m := range members {
				at := m["@odata.id"].(string)
				members[i] = tree[at]()
				members[i]["@odata.id"] = at
			}
		}
	}
	if tag := s.tag(path); tag != "" {
		d["@odata.etag"] = tag
		w.Header().Set("ETag", tag)
	}
	reply(w, http.StatusOK, d)
}

// tag is the entity tag of a document that can be changed.
func (s *Server) tag(path string) string {
	n := 0
	for _, b := range s.boxes {
		n += b.rev
	}
	switch {
	case !strings.HasPrefix(path, v1+"/Systems/") && !strings.HasPrefix(path, v1+"/AccountService/Accounts/") && !strings.Contains(path, "/VirtualMedia/"):
		return ""
	case s.o.Dialect.Tags == "weak":
		return fmt.Sprintf(`W/"%d"`, 1000+n)
	case s.o.Dialect.Tags == "strong":
		return fmt.Sprintf(`"%d"`, 1000+n)
	}
	return ""
}

func collectionOf(name string, paths ...string) func() doc {
	return func() doc { return doc{"Name": name, "Members": refs(paths...)} }
}

// tree is all documents by their path. They are made when asked for, because looking at a machine counts.
func (s *Server) tree() map[string]func() doc {
	d := s.o.Dialect
	t := map[string]func() doc{v1: s.root, "/redfish": func() doc { return doc{"v1": v1 + "/"} }}
	var systems []string
	for _, b := range s.boxes {
		path := s.systemPath(b)
		systems = append(systems, path)
		s.addSystem(t, b, path)
	}
	t[v1+"/Systems"] = collectionOf("Computer System Collection", systems...)
	t[v1+"/Managers"] = collectionOf("Manager Collection", s.managerPath())
	t[v1+"/Chassis"] = collectionOf("Chassis Collection", s.chassisPath())
	t[v1+"/SessionService"] = func() doc {
		return doc{"Id": "SessionService", "Name": "Session Service", "Sessions": ref(sessionsPath)}
	}
	var sessions []string
	for _, id := range s.sessions {
		sessions = append(sessions, sessionsPath+"/"+id)
		t[sessionsPath+"/"+id] = func() doc { return doc{"Id": id, "Name": "User Session"} }
	}
	slices.Sort(sessions)
	t[sessionsPath] = collectionOf("Sessions", sessions...)
	s.addManager(t)
	s.addChassis(t)
	s.addAccounts(t)
	home := s.managerPath()
	if !d.LogInManager {
		home = s.systemPath(s.boxes[0])
	}
	s.addLog(t, home+"/LogServices")
	if d.DrivesInManager {
		s.addDrives(t, s.boxes[0], s.managerPath()+"/VirtualMedia")
	} else {
		for _, b := range s.boxes {
			s.addDrives(t, b, s.systemPath(b)+"/VirtualMedia")
		}
	}
	return t
}

func (s *Server) root() doc {
	d := s.o.Dialect
	root := doc{
		"@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot", "Id": "RootService", "Name": "Root Service", "RedfishVersion": "1.15.0",
		"UUID": "92384634-2938-2342-8820-489239905423", "Systems": ref(v1 + "/Systems"), "Managers": ref(v1 + "/Managers"), "Chassis": ref(v1 + "/Chassis"),
		"AccountService": ref(v1 + "/AccountService"), "Links": doc{"Sessions": ref(sessionsPath)}, "SessionService": ref(v1 + "/SessionService"),
		"ProtocolFeaturesSupported": doc{"ExpandQuery": doc{"NoLinks": d.Expands}},
	}
	if s.o.HasNoSessions {
		delete(root, "Links")
	}
	for key, value := range map[string]string{"Vendor": d.Vendor, "Product": d.Product} {
		if value != "" {
			root[key] = value
		}
	}
	if d.OEM != "" {
		root["Oem"] = doc{d.OEM: doc{}}
	}
	return root
}

func (s *Server) addSystem(t map[string]func() doc, b *box, path string) {
	d := s.o.Dialect
	t[path] = func() doc { return s.system(b, path) }
	if d.HasActionInfo {
		t[path+"/ResetActionInfo"] = func() doc {
			return doc{"Id": "ResetActionInfo", "Name": "Reset Action Info", "Parameters": []doc{{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": d.ResetTypes}}}
		}
	}
	if d.BootInSettings {
		t[path+"/SD"] = func() doc {
			return doc{"Id": "SD", "Name": "Future state", "Boot": doc{"BootSourceOverrideTarget": "None"}}
		}
	}
	if d.HasBootOptions {
		t[path+"/BootOptions"] = collectionOf("Boot Options", path+"/BootOptions/1", path+"/BootOptions/2")
		t[path+"/BootOptions/1"] = func() doc {
			return doc{"Id": "1", "Name": "HTTP IPv6", "UefiDevicePath": "PciRoot(0x0)/Pci(0x1,0x0)/MAC(525400AA0001,0x1)/IPv6(::)/Uri()"}
		}
		t[path+"/BootOptions/2"] = func() doc { return doc{"Id": "2", "Name": "HTTP IPv4", "UefiDevicePath": httpDevicePath} }
	}
	addHardware(t, path)
	s.addSecureBoot(t, path)
}

const httpDevicePath = "PciRoot(0x0)/Pci(0x1,0x0)/MAC(525400AA0001,0x1)/IPv4(0.0.0.0)/Uri()"

// system is the document that matters most.
func (s *Server) system(b *box, path string) doc {
	d := s.o.Dialect
	boot := doc{
		"BootSourceOverrideEnabled": b.enabled, "BootSourceOverrideTarget": b.boot.Target,
		"BootSourceOverrideTarget@Redfish.AllowableValues": d.Targets,
	}
	if d.Mode != "" {
		boot["BootSourceOverrideMode"] = b.boot.Mode
	}
	if d.HasHTTPBootURI {
		boot["HttpBootUri"] = b.boot.URI
	}
	if d.HasBootOptions {
		boot["BootOptions"], boot["UefiTargetBootSourceOverride"] = ref(path+"/BootOptions"), b.path
	}
	reset := doc{"target": path + "/Actions/ComputerSystem.Reset"}
	if d.HasActionInfo {
		reset["@Redfish.ActionInfo"] = path + "/ResetActionInfo"
	} else {
		reset["ResetType@Redfish.AllowableValues"] = d.ResetTypes
	}
	sys := doc{
		"@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem", "Id": b.ID, "Name": "System " + b.ID, "SystemType": "Physical",
		"Manufacturer": d.Manufacturer, "Model": d.Model, "SKU": "8675309", "SerialNumber": "SN-" + b.ID, "UUID": "38947555-7742-3448-3784-823347823834",
		"BiosVersion": "P79 v1.45", "PowerState": s.powerState(b), "Boot": boot, "Actions": doc{"#ComputerSystem.Reset": reset},
		"Status":           doc{"State": "Enabled", "Health": "OK", "HealthRollup": "Warning"},
		"ProcessorSummary": doc{"Count": 2, "Model": "Intel(R) Xeon(R)"}, "MemorySummary": doc{"TotalSystemMemoryGiB": 96},
		"TrustedModules": []doc{{"InterfaceType": "TPM2_0", "Status": doc{"State": "Enabled"}}},
		"Processors":     ref(path + "/Processors"), "Memory": ref(path + "/Memory"), "Storage": ref(path + "/Storage"), "EthernetInterfaces": ref(path + "/EthernetInterfaces"),
		"SecureBoot": ref(path + "/SecureBoot"),
		"Links":      doc{"Chassis": refs(s.chassisPath()), "ManagedBy": refs(s.managerPath())},
	}
	if !d.LogInManager {
		sys["LogServices"] = ref(path + "/LogServices")
	}
	if !d.DrivesInManager {
		sys["VirtualMedia"] = ref(path + "/VirtualMedia")
	}
	switch d.LED {
	case "active":
		sys["LocationIndicatorActive"] = b.isLit
	case "indicator":
		sys["IndicatorLED"] = map[bool]string{true: "Blinking", false: "Off"}[b.isLit]
	}
	return sys
}

func (s *Server) powerState(b *box) any {
	on, err := b.Machine.IsOn()
	if err != nil {
		return nil
	}
	if b.heading != nil && *b.heading == on {
		b.heading = nil
	}
	switch {
	case b.heading != nil && s.o.Dialect.IsTransitional && *b.heading:
		return "PoweringOn"
	case b.heading != nil && s.o.Dialect.IsTransitional:
		return "PoweringOff"
	case on:
		return "On"
	}
	return "Off"
}

func (s *Server) addManager(t map[string]func() doc) {
	d, path := s.o.Dialect, s.managerPath()
	t[path] = func() doc {
		m := doc{
			"@odata.type": "#Manager.v1_11_0.Manager", "Id": d.ManagerID, "Name": "Manager", "ManagerType": "BMC", "Model": d.ControllerModel, "FirmwareVersion": d.Firmware,
			"EthernetInterfaces": ref(path + "/EthernetInterfaces"), "Status": doc{"State": "Enabled", "Health": "OK"},
		}
		if d.LogInManager {
			m["LogServices"] = ref(path + "/LogServices")
		}
		if d.DrivesInManager {
			m["VirtualMedia"] = ref(path + "/VirtualMedia")
		}
		return m
	}
	t[path+"/EthernetInterfaces"] = collectionOf("Manager Ethernet", path+"/EthernetInterfaces/1")
	t[path+"/EthernetInterfaces/1"] = func() doc {
		return doc{
			"Id": "1", "Name": "NIC", "MACAddress": "23:11:8a:33:cf:ea", "PermanentMACAddress": "12:44:6a:3b:04:11", "SpeedMbps": 1000,
			"IPv4Addresses": []doc{{"Address": "192.0.2.10", "AddressOrigin": "Static"}}, "VLAN": doc{"VLANEnable": true, "VLANId": 101},
		}
	}
}

func (s *Server) addAccounts(t map[string]func() doc) {
	base := v1 + "/AccountService"
	t[base] = func() doc {
		return doc{"Id": "AccountService", "Name": "Accounts", "Accounts": ref(base + "/Accounts")}
	}
	var paths []string
	for _, a := range s.accounts {
		path := base + "/Accounts/" + a.id
		paths = append(paths, path)
		t[path] = func() doc {
			return doc{"Id": a.id, "Name": "User Account", "UserName": a.name, "RoleId": a.role, "Enabled": a.enabled, "Password": json.RawMessage("null")}
		}
	}
	t[base+"/Accounts"] = collectionOf("Accounts Collection", paths...)
}
