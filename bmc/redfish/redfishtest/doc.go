// Package redfishtest owns a Redfish service for tests: an HTTP server with the documents that a client walks, the
// dialects of several vendors, and faults by script. It never shares code with the driver, and it is imported by tests
// only.
//
//	s := redfishtest.New(redfishtest.Options{Dialect: redfishtest.IDRAC})
//	url := s.Start(t)
//	s.Script(redfishtest.Fault{Method: "PATCH", Times: 1, Do: redfishtest.Status(412)})
//
// What it powers is a Machine: Memory, or something real such as a libvirt domain.
package redfishtest
