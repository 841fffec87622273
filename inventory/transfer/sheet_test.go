package transfer

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
)

func asUTF16(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestTablesAreReadAsPeopleHaveThem(t *testing.T) {
	const plainTable = "name,macs,rack,labels\na1,52:54:00:dd:00:01,r1,role=web env=prod\n"
	for name, c := range map[string]struct {
		text  string
		sheet Sheet
	}{
		"ours":                     {plainTable, Sheet{}},
		"headings in any case":     {"Name,MACs,RACK,Labels\na1,52:54:00:dd:00:01,r1,role=web env=prod\n", Sheet{}},
		"UTF-16, little end":       {"\xff\xfe" + asUTF16(binary.LittleEndian, plainTable), Sheet{}},
		"UTF-16, big end":          {"\xfe\xff" + asUTF16(binary.BigEndian, plainTable), Sheet{}},
		"UTF-16 without mark":      {asUTF16(binary.LittleEndian, plainTable), Sheet{}},
		"UTF-8 with mark":          {"\ufeff" + plainTable, Sheet{}},
		"Windows line ends":        {strings.ReplaceAll(plainTable, "\n", "\r\n"), Sheet{}},
		"old Mac line ends":        {strings.ReplaceAll(plainTable, "\n", "\r"), Sheet{}},
		"semicolons":               {strings.ReplaceAll(plainTable, ",", ";"), Sheet{}},
		"tabs":                     {strings.ReplaceAll(plainTable, ",", "\t"), Sheet{}},
		"bars":                     {strings.ReplaceAll(plainTable, ",", "|"), Sheet{}},
		"sep= of Excel":            {"sep=;\r\n" + strings.ReplaceAll(plainTable, ",", ";"), Sheet{}},
		"blank rows":               {"\n,,,\n\nname,macs,rack,labels\n,\n  ,\t,,\na1,52:54:00:dd:00:01,r1,role=web env=prod\n,,,,,\n", Sheet{}},
		"columns used once":        {"name,macs,rack,labels,,\na1,52:54:00:dd:00:01,r1,role=web env=prod,,\n", Sheet{}},
		"line ends in cells":       {"name,macs,rack,labels\na1,52:54:00:dd:00:01,r1,\"role=web\nenv=prod\"\n", Sheet{}},
		"labels with semicolons":   {"name,macs,rack,labels\na1,52:54:00:dd:00:01,r1,role=web;env=prod\n", Sheet{}},
		"a name in capitals":       {"name,macs,rack,labels\nA1,52:54:00:dd:00:01,r1,\"role=web, env=prod\"\n", Sheet{}},
		"marks of texts":           {"name,macs,rack,labels\n'a1,'52:54:00:dd:00:01,'r1,role=web env=prod\n", Sheet{}},
		"mapped":                   {"hostname,hw,Where,labels\na1,52:54:00:dd:00:01,r1,role=web env=prod\n", Sheet{Map: []string{"Hostname=name", "HW=macs", "where=rack"}}},
		"columns mapped to labels": {"name,macs,rack,Role,Env,Junk\na1,52:54:00:dd:00:01,r1,web,prod,x\n", Sheet{Map: []string{"role=label:role", "env=label:env", "junk="}}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ReadSheet("x.csv", strings.NewReader(c.text), c.sheet)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Hosts) != 1 {
				t.Fatalf("%d hosts", len(d.Hosts))
			}
			h := d.Hosts[0].Value
			if h.Name != "a1" || len(h.NICs) != 1 || h.NICs[0].MAC != "52:54:00:dd:00:01" || h.Place.Rack != "r1" || h.Labels["role"] != "web" || h.Labels["env"] != "prod" {
				t.Errorf("got %+v", h)
			}
		})
	}
}

func TestCellsAreReadAsSpreadsheetsWriteThem(t *testing.T) {
	for cells, want := range map[string]inventory.Host{
		"12,TRUE,FALSE,S1":     {Place: inventory.Place{Unit: 12}, IsProtected: true, Serial: "S1"},
		"U12,yes,no,S1":        {Place: inventory.Place{Unit: 12}, IsProtected: true, Serial: "S1"},
		"12.0,x,,S1":           {Place: inventory.Place{Unit: 12}, IsProtected: true, Serial: "S1"},
		"\"12,0\",1,0,S1":      {Place: inventory.Place{Unit: 12}, IsProtected: true, Serial: "S1"},
		"12U,WAHR,FALSCH,S1":   {Place: inventory.Place{Unit: 12}, IsProtected: true, Serial: "S1"},
		"-,n/a,—,N/A":          {},
		"1,false,true,'-":      {Place: inventory.Place{Unit: 1}, IsCordoned: true, Serial: "-"},
		"1,false,true,'=1+1":   {Place: inventory.Place{Unit: 1}, IsCordoned: true, Serial: "=1+1"},
		"1,false,true,'00123":  {Place: inventory.Place{Unit: 1}, IsCordoned: true, Serial: "00123"},
		"RU 7,true,true,none ": {Place: inventory.Place{Unit: 7}, IsProtected: true, IsCordoned: true, Serial: "none"},
	} {
		d, err := ReadCSV("x.csv", strings.NewReader("name,unit,isProtected,isCordoned,serial\na1,"+cells+"\n"))
		if err != nil || len(d.Hosts) != 1 {
			t.Errorf("%s: %v", cells, err)
			continue
		}
		h := d.Hosts[0].Value
		if h.Place.Unit != want.Place.Unit || h.IsProtected != want.IsProtected || h.IsCordoned != want.IsCordoned || h.Serial != want.Serial {
			t.Errorf("%s: got %+v", cells, h)
		}
	}
}

func TestASpreadsheetRunsNothingOfAnExport(t *testing.T) {
	for _, text := range []string{"=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "-", "N/A", "'quoted", "#N/A", "plain"} {
		h := inventory.Host{Name: "a1", Manufacturer: text, Product: text, Place: inventory.Place{Rack: "r1", Unit: 3}, Labels: map[string]string{"a": "b"}, IsProtected: true}
		var out strings.Builder
		if err := WriteCSV(&out, Hosts, Export(Current{Hosts: []inventory.Host{h}})); err != nil {
			t.Fatal(err)
		}
		_, row, _ := strings.Cut(out.String(), "\n")
		for cell := range strings.SplitSeq(row, ",") {
			if cell = strings.Trim(cell, "\"\n"); cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				t.Errorf("%q is written as a formula: %s", text, row)
			}
		}
		d, err := ReadCSV("x.csv", strings.NewReader(out.String()))
		if err != nil || len(d.Hosts) != 1 || d.Hosts[0].Value.Product != text || d.Hosts[0].Value.Manufacturer != text {
			t.Errorf("%q comes back as %+v, %v", text, d.Hosts, err)
		}
	}
}

func TestExportsOfOtherInventories(t *testing.T) {
	for preset, text := range map[string]string{
		"netbox": "Name,Status,Tenant,Site,Location,Rack,Role,Manufacturer,Type,IP Address,Serial number,Asset tag,Position,MAC Address\n" +
			"Node-01.example.org,Active,,fra,,r1,web,Acme,A100,10.0.0.4/24,SN0001,AT1,U12,52:54:00:dd:00:01\n",
		"maas": "FQDN;MAC address;Power state;Status;Pool;Zone;Serial number;Vendor;Product\n" +
			"node-01.maas;52:54:00:dd:00:01;on;Deployed;default;z1;SN0001;Acme;A100\n",
		"ansible": "inventory_hostname,ansible_host,ansible_default_ipv4.macaddress,ansible_product_serial,ansible_system_vendor,ansible_product_name,groups\n" +
			"node-01,10.0.0.4,52:54:00:dd:00:01,SN0001,Acme,A100,web\n",
		"device42": "Device Name\tSerial No\tBuilding\tRoom\tRack\tStart At\tOrientation\tManufacturer\tHardware Model\tMAC Address\tService Level\n" +
			"node-01\tSN0001\tfra\t\tr1\t12.0\tBack\tAcme\tA100\t52:54:00:dd:00:01\tProduction\n",
	} {
		_, err := ReadCSV("x.csv", strings.NewReader(text))
		var all Problems
		if !errors.As(err, &all) || len(all) != 1 || !strings.Contains(all[0].Hint, "--preset "+preset) {
			t.Errorf("%s without its preset: %v; want one line that names it", preset, err)
		}
		d, err := ReadSheet("x.csv", strings.NewReader(text), Sheet{Preset: preset})
		if err != nil || len(d.Hosts) != 1 {
			t.Errorf("%s: %d hosts, %v", preset, len(d.Hosts), err)
			continue
		}
		h := d.Hosts[0].Value
		if h.Name != "node-01" || h.Serial != "SN0001" || h.Manufacturer != "Acme" || h.Product != "A100" || len(h.NICs) != 1 {
			t.Errorf("%s: got %+v", preset, h)
		}
		if (preset == "netbox" || preset == "device42") && (h.Place.Unit != 12 || h.Place.Rack != "r1" || h.Place.Site != "fra") {
			t.Errorf("%s: place %+v", preset, h.Place)
		}
		if preset == "netbox" && !strings.Contains(strings.Join(d.Ignored, " "), "IP Address") {
			t.Errorf("what was left out: %q", d.Ignored)
		}
	}
}

func TestUnknownColumnsAreOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		sheet Sheet
		said  string
	}{
		"two":                    {"hostname,colour,macs\na,b,52:54:00:dd:00:01\n", Sheet{}, `"hostname", "colour" are not known here`},
		"a mapping of no column": {"name\na\n", Sheet{Map: []string{"host=name"}}, `no column is called "host"`},
		"a mapping to no field":  {"host\na\n", Sheet{Map: []string{"host=nom"}}, `"host" is not known here: --map makes it "nom", which is no field`},
		"a preset that is none":  {"name\na\n", Sheet{Preset: "excel"}, "no preset"},
		"two columns of a field": {"name,Host\na,b\n", Sheet{Map: []string{"host=name"}}, "there twice"},
		"a workbook":             {"PK\x03\x04....", Sheet{}, "save the sheet as CSV"},
		"an old workbook":        {"\xd0\xcf\x11\xe0....", Sheet{}, "save the sheet as CSV"},
		"a web page":             {" <!DOCTYPE html><html>", Sheet{}, "web page"},
		"JSON":                   {"[{\"name\": \"a\"}]", Sheet{}, "JSON"},
		"a failed formula":       {"name,rack\na,#REF!\n", Sheet{}, "an error of the spreadsheet"},
		"a MAC as a number":      {"name,macs\na,5.254E+11\n", Sheet{}, "took it for a number"},
		"a cell without heading": {"name,macs,\na,52:54:00:dd:00:01,stray\n", Sheet{}, `no heading and holds "stray"`},
		"half a character":       {"\xff\xfea", Sheet{}, "UTF-16"},
	} {
		_, err := ReadSheet("x.csv", strings.NewReader(c.text), c.sheet)
		var e *inventory.Error
		var all Problems
		if !errors.As(err, &e) || !errors.As(err, &all) || len(all) != 1 || !strings.Contains(all[0].String(), c.said) {
			t.Errorf("%s: %v; want one line with %q", name, err, c.said)
		}
	}
}

func FuzzReadSheet(f *testing.F) {
	f.Add("\xff\xfe"+asUTF16(binary.LittleEndian, "name\na\n"), "netbox", "a=name")
	f.Add("sep=;\nName;Position\nx;U12\n", "netbox", "x=")
	f.Add("a|b\n\n|\n1|2\n", "", "a=label:b")
	f.Fuzz(func(t *testing.T, text, preset, m string) {
		d, err := ReadSheet("x.csv", strings.NewReader(text), Sheet{Preset: preset, Map: []string{m}})
		var all Problems
		if err != nil && (!errors.As(err, &all) || len(all) == 0 || len(all) > maxProblems) {
			t.Fatalf("%v is no reason", err)
		}
		if err == nil && len(d.Hosts)+len(d.Subnets)+len(d.Reservations) > 0 && text == "" {
			t.Fatal("rows of nothing")
		}
	})
}
