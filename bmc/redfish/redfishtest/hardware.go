package redfishtest

import "fmt"

// addHardware adds what a machine is made of.
func addHardware(t map[string]func() doc, path string) {
	t[path+"/Processors"] = collectionOf("Processors", path+"/Processors/CPU1", path+"/Processors/CPU2", path+"/Processors/FPGA1")
	for _, id := range []string{"CPU1", "CPU2"} {
		t[path+"/Processors/"+id] = func() doc {
			return doc{
				"Id": id, "Name": "Processor", "ProcessorType": "CPU", "ProcessorArchitecture": "x86", "InstructionSet": "x86-64", "Manufacturer": "Intel(R) Corporation",
				"Model": "Xeon Gold 6338", "MaxSpeedMHz": 3200, "TotalCores": 32, "TotalThreads": 64, "Status": doc{"State": "Enabled", "Health": "OK"},
			}
		}
	}
	t[path+"/Processors/FPGA1"] = func() doc {
		return doc{"Id": "FPGA1", "Name": "FPGA", "ProcessorType": "FPGA", "Status": doc{"State": "Enabled"}}
	}
	t[path+"/Memory"] = collectionOf("Memory", path+"/Memory/A1", path+"/Memory/A2", path+"/Memory/A3")
	for i, id := range []string{"A1", "A2", "A3"} {
		t[path+"/Memory/"+id] = func() doc {
			if i == 2 {
				return doc{"Id": id, "Name": "DIMM", "CapacityMiB": nil, "Status": doc{"State": "Absent"}}
			}
			return doc{
				"Id": id, "Name": "DIMM", "DeviceLocator": "DIMM " + id, "CapacityMiB": 49152, "MemoryDeviceType": "DDR5", "OperatingSpeedMhz": 4800,
				"Manufacturer": "Hynix", "PartNumber": "HMCG78", "SerialNumber": fmt.Sprintf("D%04d", i), "Status": doc{"State": "Enabled", "Health": "OK"},
			}
		}
	}
	t[path+"/Storage"] = collectionOf("Storage", path+"/Storage/1")
	t[path+"/Storage/1"] = func() doc {
		return doc{"Id": "1", "Name": "Controller", "Drives": refs(path+"/Storage/1/Drives/0", path+"/Storage/1/Drives/1", path+"/Storage/1/Drives/gone")}
	}
	t[path+"/Storage/1/Drives/0"] = func() doc {
		return doc{
			"Id": "0", "Name": "Disk 0", "Manufacturer": "Samsung", "Model": "PM9A3", "SerialNumber": "S64G0001", "Revision": "GDC5", "Protocol": "NVMe", "MediaType": "SSD",
			"CapacityBytes": 1920383410176, "BlockSizeBytes": 512, "Identifiers": []doc{{"DurableNameFormat": "EUI", "DurableName": "36344730"}}, "Status": doc{"Health": "OK", "State": "Enabled"},
		}
	}
	t[path+"/Storage/1/Drives/1"] = func() doc { // a capacity as text: some controllers write it so
		return doc{"Id": "1", "Name": "Disk 1", "Model": "ST8000", "MediaType": "HDD", "Protocol": "SATA", "CapacityBytes": "8001563222016", "Status": doc{"Health": "Warning", "State": "Enabled"}}
	}
	t[path+"/EthernetInterfaces"] = collectionOf("Ethernet", path+"/EthernetInterfaces/NIC.1", path+"/EthernetInterfaces/NIC.2")
	t[path+"/EthernetInterfaces/NIC.1"] = func() doc {
		return doc{"Id": "NIC.1", "Name": "Port", "MACAddress": "52:54:00:AA:00:01", "SpeedMbps": 25000, "LinkStatus": "LinkUp", "MTUSize": 1500}
	}
	t[path+"/EthernetInterfaces/NIC.2"] = func() doc { return doc{"Id": "NIC.2", "Name": "Port", "MACAddress": "", "LinkStatus": "LinkDown"} }
}

// addSecureBoot adds what the firmware trusts: two authorities in db, one of them in dbx.
func (s *Server) addSecureBoot(t map[string]func() doc, path string) {
	databases := path + "/SecureBoot/SecureBootDatabases"
	t[path+"/SecureBoot"] = func() doc {
		return doc{"Id": "SecureBoot", "Name": "Secure Boot", "SecureBootCurrentBoot": "Enabled", "SecureBootDatabases": ref(databases)}
	}
	t[databases] = collectionOf("Databases", databases+"/PK", databases+"/db", databases+"/dbx")
	certificate := func(id, name, ends string) doc {
		return doc{"Id": id, "Name": "Certificate", "CertificateType": "PEM", "Subject": doc{"CommonName": name}, "ValidNotAfter": ends}
	}
	all := map[string][]doc{
		"PK": {certificate("1", "Contoso PK", "2038-01-01T00:00:00Z")},
		"db": {
			certificate("1", "Microsoft Corporation UEFI CA 2011", "2026-06-27T21:32:45Z"), certificate("2", "Microsoft UEFI CA 2023", "2038-06-13T19:31:47Z"),
			certificate("3", "Withdrawn CA", "2030-01-01T00:00:00Z"),
		},
		"dbx": {certificate("1", "Withdrawn CA", "2030-01-01T00:00:00Z")},
	}
	for id, certs := range all {
		at := databases + "/" + id
		t[at] = func() doc {
			return doc{"Id": id, "DatabaseId": id, "Name": "Database", "Certificates": ref(at + "/Certificates")}
		}
		var members []string
		for i, c := range certs {
			member := fmt.Sprintf("%s/Certificates/%d", at, i+1)
			members = append(members, member)
			t[member] = func() doc { return c }
		}
		t[at+"/Certificates"] = collectionOf("Certificates", members...)
	}
}

// addChassis adds the sensors.
func (s *Server) addChassis(t map[string]func() doc) {
	path := s.chassisPath()
	ok := doc{"State": "Enabled", "Health": "OK"}
	if s.o.Dialect.HasSensors {
		t[path] = func() doc {
			return doc{"Id": s.o.Dialect.ChassisID, "Name": "Chassis", "Sensors": ref(path + "/Sensors")}
		}
		t[path+"/Sensors"] = collectionOf("Sensors", path+"/Sensors/Temp1", path+"/Sensors/Fan1", path+"/Sensors/Fan2")
		t[path+"/Sensors/Temp1"] = func() doc {
			return doc{"Id": "Temp1", "Name": "CPU1 Temp", "ReadingType": "Temperature", "Reading": 41.5, "ReadingUnits": "Cel", "Status": ok}
		}
		t[path+"/Sensors/Fan1"] = func() doc {
			return doc{"Id": "Fan1", "Name": "Fan 1", "ReadingType": "Rotational", "Reading": 8200, "ReadingUnits": "RPM", "Status": doc{"State": "Enabled", "Health": "Warning"}}
		}
		t[path+"/Sensors/Fan2"] = func() doc {
			return doc{"Id": "Fan2", "Name": "Fan 2", "ReadingType": "Rotational", "Reading": nil, "ReadingUnits": "RPM", "Status": doc{"State": "Absent"}}
		}
		return
	}
	t[path] = func() doc {
		return doc{"Id": s.o.Dialect.ChassisID, "Name": "Chassis", "Thermal": ref(path + "/Thermal"), "Power": ref(path + "/Power")}
	}
	t[path+"/Thermal"] = func() doc {
		return doc{
			"Id": "Thermal", "Name": "Thermal", "Temperatures": []doc{{"Name": "CPU1 Temp", "ReadingCelsius": 41.5, "Status": ok}},
			"Fans": []doc{
				{"Name": "Fan 1", "Reading": 8200, "ReadingUnits": "RPM", "Status": doc{"State": "Enabled", "Health": "Warning"}},
				{"Name": "Fan 2", "Reading": nil, "Status": doc{"State": "Absent"}},
			},
		}
	}
	t[path+"/Power"] = func() doc {
		return doc{
			"Id": "Power", "Name": "Power", "Voltages": []doc{{"Name": "VRM1", "ReadingVolts": 12.1, "Status": ok}},
			"PowerControl": []doc{{"Name": "System Power", "PowerConsumedWatts": 344, "Status": ok}},
		}
	}
}

// addLog adds an event log, and one that is of no interest.
func (s *Server) addLog(t map[string]func() doc, base string) {
	path := base + "/" + s.o.Dialect.Log
	t[base] = collectionOf("Logs", base+"/Audit", path)
	t[base+"/Audit"] = func() doc { return doc{"Id": "Audit", "Name": "Audit", "Entries": ref(base + "/Audit/Entries")} }
	t[path] = func() doc {
		return doc{
			"Id": s.o.Dialect.Log, "Name": "Event Log", "Entries": ref(path + "/Entries"),
			"Actions": doc{"#LogService.ClearLog": doc{"target": path + "/Actions/LogService.ClearLog"}},
		}
	}
	t[path+"/Entries"] = func() doc {
		if s.cleared {
			return doc{"Name": "Entries", "Members": refs()}
		}
		return doc{"Name": "Entries", "Members": refs(path+"/Entries/1", path+"/Entries/2", path+"/Entries/3", path+"/Entries/4")}
	}
	for i, e := range []doc{
		{"Created": "2026-11-01T10:00:00+01:00", "Severity": "OK", "Message": "Power supply 1 is back."},
		{"Created": "2026-11-03T10:00:00Z", "Severity": "Critical", "Message": "Fan 1\nfailed."},
		{"Created": "2026-11-02T10:00:00Z", "Severity": "Warning", "Message": "Fan 1 is slow."},
		{"Created": "0000-00-00T00:00:00Z", "Severity": "OK", "Message": "The clock was lost."},
	} {
		t[fmt.Sprintf("%s/Entries/%d", path, i+1)] = func() doc {
			e["Id"], e["Name"] = fmt.Sprint(i+1), "Log Entry"
			return e
		}
	}
}

// addDrives adds the virtual drives of a machine.
func (s *Server) addDrives(t map[string]func() doc, b *box, base string) {
	d := s.o.Dialect
	var paths []string
	for _, id := range d.Drives {
		path := base + "/" + id
		paths = append(paths, path)
		t[path] = func() doc {
			v := doc{"Id": id, "Name": "Virtual Removable Media", "MediaTypes": mediaTypes(id), "Inserted": b.isIn[id], "Image": nil, "ConnectedVia": "NotConnected"}
			if b.isIn[id] || d.KeepsImage && b.images[id] != "" {
				v["Image"] = b.images[id]
			}
			if b.isIn[id] {
				v["ConnectedVia"] = "URI"
			}
			if d.KeepsImage {
				delete(v, "Inserted")
			}
			if !d.MediaByPatch {
				v["Actions"] = doc{
					"#VirtualMedia.InsertMedia": doc{"target": path + "/Actions/VirtualMedia.InsertMedia"},
					"#VirtualMedia.EjectMedia":  doc{"target": path + "/Actions/VirtualMedia.EjectMedia"},
				}
			}
			return v
		}
	}
	t[base] = collectionOf("Virtual Media", paths...)
}

func mediaTypes(id string) []string {
	switch id {
	case "Floppy1", "1", "RemovableDisk":
		return []string{"Floppy", "USBStick"}
	}
	return []string{"CD", "DVD"}
}
