package signals

// cases are troubles by alert: series on which it fires, the labels with which it does, and
// series on which it keeps still. Series are in Prometheus' own notation for tests: 1x90 is 1,
// ninety-one times; 0+1x90 grows by one each minute.
var cases = []struct {
	alert   string
	trouble string
	fires   string
	still   []string
}{
	{
		"RopelineNodeDown",
		`up{job="ropeline",instance="a"} 0x90
		up{job="ropeline",instance="b"} 1x90`,
		`{instance="a", job="ropeline"}`,
		[]string{`up{job="other",instance="a"} 0x90`, `up{job="ropeline",instance="a"} 1x89 0`},
	},
	{
		"RopelineNodeNotReady",
		`ropeline_node_ready{instance="a"} 0x90
		ropeline_node_leaving{instance="a"} 0x90`,
		`{instance="a"}`,
		[]string{`ropeline_node_ready{instance="a"} 1x90`, `ropeline_node_ready{instance="a"} 0x90
		ropeline_node_leaving{instance="a"} 1x90`},
	},
	{
		"RopelinePeersFailed",
		`ropeline_peers{instance="a",state="failed"} 1x90`, `{instance="a"}`,
		[]string{`ropeline_peers{instance="a",state="failed"} 0x90
		ropeline_peers{instance="a",state="left"} 3x90`},
	},
	{
		"RopelineMeshSplit",
		`up{job="ropeline",instance="a"} 1x90
		up{job="ropeline",instance="b"} 1x90
		up{job="ropeline",instance="c"} 1x90
		ropeline_peers{instance="a",state="alive"} 1x90
		ropeline_peers{instance="b",state="alive"} 1x90
		ropeline_peers{instance="c",state="alive"} 0x90`,
		`{}`,
		[]string{`up{job="ropeline",instance="a"} 1x90
		up{job="ropeline",instance="b"} 1x90
		up{job="ropeline",instance="c"} 0x90
		ropeline_peers{instance="a",state="alive"} 1x90
		ropeline_peers{instance="b",state="alive"} 1x90`},
	},
	{"RopelineClockOff", `ropeline_clock_ok{instance="a"} 0x90`, `{instance="a"}`, []string{`ropeline_clock_ok{instance="a"} 1x90`}},
	{
		"RopelineClockSkew", `ropeline_peer_largest_clock_offset_seconds{instance="a"} 0.3x90`, `{instance="a"}`,
		[]string{`ropeline_peer_largest_clock_offset_seconds{instance="a"} 0.1x90`},
	},
	{"RopelineStoreFailing", `ropeline_store_ok{instance="a"} 0x90`, `{instance="a"}`, []string{`ropeline_store_ok{instance="a"} 1x90`}},
	{
		"RopelineDiskNearlyFull",
		`ropeline_disk_free_bytes{instance="a"} 400e6x90
		ropeline_disk_size_bytes{instance="a"} 1e9x90`,
		`{instance="a"}`,
		[]string{`ropeline_disk_free_bytes{instance="a"} 600e6x90
		ropeline_disk_size_bytes{instance="a"} 1e9x90`},
	},
	{
		"RopelineDiskNearlyFull",
		`ropeline_disk_free_bytes{instance="a"} 20e9x90
		ropeline_disk_size_bytes{instance="a"} 1e12x90`,
		`{instance="a"}`, nil,
	},
	{
		"RopelineFactsNearlyFull",
		`ropeline_facts{instance="a"} 90x90
		ropeline_facts_limit{instance="a"} 100x90`,
		`{instance="a"}`,
		[]string{`ropeline_facts{instance="a"} 70x90
		ropeline_facts_limit{instance="a"} 100x90`},
	},
	{"RopelineSettingsLeftOut", `ropeline_settings_left_out{instance="a"} 1x90`, `{instance="a"}`, []string{`ropeline_settings_left_out{instance="a"} 0x90`, `ropeline_settings_left_out{instance="a"} 1x3 0x87`}},
	{"RopelineOverflow", `ropeline_overflow_total{instance="a"} 0+1x90`, `{instance="a"}`, []string{`ropeline_overflow_total{instance="a"} 0x9 7x80`}},
	{
		"RopelineMessagesRefused",
		`ropeline_messages_refused_total{instance="a"} 0x90
		ropeline_mesh_peers_refused_total{instance="a"} 0+1x90
		ropeline_mesh_frames_malformed_total{instance="a"} 0x90`,
		`{instance="a"}`,
		[]string{`ropeline_messages_refused_total{instance="a"} 5x90
		ropeline_mesh_peers_refused_total{instance="a"} 5x90
		ropeline_mesh_frames_malformed_total{instance="a"} 5x90`},
	},
	{
		"RopelineMessagesRefused", `ropeline_limit_messages_refused_total{instance="a"} 0+1x90`, `{instance="a"}`,
		[]string{`ropeline_limit_messages_refused_total{instance="a"} 5x90`},
	},
	{"RopelinePanics", `ropeline_mesh_panics_total{instance="a"} 0x85 1x4`, `{instance="a"}`, []string{`ropeline_mesh_panics_total{instance="a"} 1x90`}},
	{
		"RopelineFileDescriptors",
		`process_open_fds{job="ropeline",instance="a"} 900x90
		process_max_fds{job="ropeline",instance="a"} 1024x90`,
		`{instance="a", job="ropeline"}`,
		[]string{`process_open_fds{job="other",instance="a"} 900x90
		process_max_fds{job="other",instance="a"} 1024x90`},
	},
	{
		"RopelineConnectionsNearlyFull",
		`ropeline_connections{instance="a"} 900x90
		ropeline_connections_max{instance="a"} 1000x90`,
		`{instance="a"}`,
		[]string{`ropeline_connections{instance="a"} 700x90
		ropeline_connections_max{instance="a"} 1000x90`, `ropeline_connections{instance="a"} 0x90
		ropeline_connections_max{instance="a"} 0x90`},
	},

	{
		"RopelineLimitExceeded",
		room("active_users", 90, 110) + room("active_users_limit", 100, 100) + info("escrow", "fifo"),
		`{room="shop", zone="z"}`,
		[]string{
			room("active_users", 90, 101) + room("active_users_limit", 100, 100),
			room("active_users", 90, 110) + room("active_users_limit", 100, 100) + room("suspended", 0, 1),
			room("active_users", 90, 110) + room("active_users_limit", 100, 100) + info("open", "fifo"),
			room("active_users", 90, 110) + room("active_users_limit", 100, 100) + info("escrow", "passthrough"),
		},
	},
	{
		"RopelineTicketsRefused", `ropeline_room_tickets_refused_total{zone="z",room="shop",instance="a"} 0+1x90
		ropeline_room_tickets_refused_total{zone="z",room="shop",instance="b"} 0x90`, `{room="shop", zone="z"}`,
		[]string{`ropeline_room_tickets_refused_total{zone="z",room="shop",instance="a"} 9x90`},
	},
	{
		"RopelineQueueStuck",
		room("waiting_users", 50, 49) + room("slots", 3, 0) + room("admitted_users", 0, 0) + info("escrow", "fifo"),
		`{room="shop", zone="z"}`,
		[]string{
			room("waiting_users", 50, 49) + room("slots", 3, 0) + room("admitted_users", 0, 1),
			room("waiting_users", 50, 49) + room("slots", 0, 0) + room("admitted_users", 0, 0),
			room("waiting_users", 0, 0) + room("slots", 3, 3) + room("admitted_users", 0, 0),
			room("waiting_users", 50, 49) + room("slots", 3, 0) + room("admitted_users", 0, 0) + room("queue_all", 1, 1),
			room("waiting_users", 50, 49) + room("slots", 3, 0) + room("admitted_users", 0, 0) + room("dry_run", 1, 1),
			room("waiting_users", 50, 49) + room("slots", 3, 0) + room("admitted_users", 0, 0) + info("escrow", "reject"),
		},
	},
	{
		"RopelineCapacityUnusable",
		`ropeline_room_capacity_unusable{zone="z",room="shop",kind="places",down_node="b1",down_site="b",state="down",instance="a"} 102x90
		ropeline_room_capacity_unusable{zone="z",room="shop",kind="places",down_node="b1",down_site="b",state="down",instance="b"} 101x90`,
		`{down_node="b1", room="shop", zone="z"}`,
		[]string{
			`ropeline_room_capacity_unusable{zone="z",room="shop",kind="places",down_node="b1",down_site="b",state="recovering",instance="a"} 102x90`,
			`ropeline_room_capacity_unusable{zone="z",room="shop",kind="places",down_node="b1",down_site="b",state="down",instance="a"} 102x80 _x9`,
		},
	},
	{
		"RopelineRightsIdle", places("held", 30, 40) + places("minted", 100, 100), `{room="shop", zone="z"}`,
		[]string{places("held", 55, 45) + places("minted", 100, 90)},
	},
	{
		"RopelineRightsMissing", places("minted", 50, 50) + room("active_users_limit", 100, 100), `{room="shop", zone="z"}`,
		[]string{places("minted", 100, 100) + room("active_users_limit", 100, 100) + room("rights_minter_known", 0, 1)},
	},
	{"RopelineRightsMissing", room("rights_minter_known", 0, 0), `{room="shop", zone="z"}`, nil},
	{"RopelineCounterSilent", room("rights_alone", 1, 0), `{instance="a", room="shop", zone="z"}`, []string{room("rights_alone", 0, 0)}},
	{"RopelineSessionsBorrowed", room("rights_borrowed", 1, 0), `{room="shop", zone="z"}`, []string{room("rights_borrowed", 0, 0)}},
	{"RopelineSiteSilent", room("frozen_sites", 1, 0), `{room="shop", zone="z"}`, []string{room("frozen_sites", 0, 0)}},

	{
		"RopelineLimitMemory", `ropeline_limit_keys_replaced_total{instance="a"} 0+50x90
		ropeline_limit_keys_replaced_total{instance="b"} 0x90`, `{instance="a"}`,
		[]string{`ropeline_limit_keys_replaced_total{instance="a"} 9x90`, `ropeline_limit_keys_replaced_total{instance="a"} 0x70 700x4 700x15`},
	},
	{
		"RopelineLimitUncounted", `ropeline_limit_lost_requests_total{instance="a"} 0+50x90
		ropeline_limit_lost_requests_total{instance="b"} 0x90`, `{instance="a"}`,
		[]string{`ropeline_limit_lost_requests_total{instance="a"} 9x90`, `ropeline_limit_lost_requests_total{instance="a"} 0x80 700x9`},
	},

	{
		"RopelineOriginEjected", `ropeline_origin_up{instance="a",room="",origin="http://o"} 0x90`, `{instance="a", origin="http://o"}`,
		[]string{`ropeline_origin_up{instance="a",room="",origin="http://o"} 1x90`},
	},
	{
		"RopelineSiteDown",
		`ropeline_origin_up{instance="a",room="shop",origin="http://o"} 0x90
		ropeline_origin_up{instance="a",room="shop",origin="http://p"} 0x90`,
		`{instance="a", room="shop"}`,
		[]string{`ropeline_origin_up{instance="a",room="shop",origin="http://o"} 0x90
		ropeline_origin_up{instance="a",room="shop",origin="http://p"} 1x90`},
	},
	{
		"RopelineOriginErrors",
		`ropeline_origin_error_ratio{instance="a",room="",origin="http://o"} 0.3x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 10x90`,
		`{instance="a", origin="http://o"}`,
		[]string{
			`ropeline_origin_error_ratio{instance="a",room="",origin="http://o"} 0.25x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 10x90`,
			`ropeline_origin_error_ratio{instance="a",room="",origin="http://o"} 1x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 2x90`,
		},
	},
	{
		"RopelineOriginSlow",
		`ropeline_origin_p50_seconds{instance="a",room="",origin="http://o"} 6x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 3x90`,
		`{instance="a", origin="http://o"}`,
		[]string{
			`ropeline_origin_p50_seconds{instance="a",room="",origin="http://o"} 5x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 10x90`,
			`ropeline_origin_p50_seconds{instance="a",room="",origin="http://o"} 6x90
		ropeline_origin_recent_requests{instance="a",room="",origin="http://o"} 2x90`,
		},
	},
	{
		"RopelineOriginFailing",
		`ropeline_origin_requests_total{instance="a",room="",origin="http://o"} 0+100x90
		ropeline_origin_failures_total{instance="a",room="",origin="http://o"} 0+10x90`,
		`{origin="http://o"}`,
		[]string{
			`ropeline_origin_requests_total{instance="a",room="",origin="http://o"} 0+100x90
		ropeline_origin_failures_total{instance="a",room="",origin="http://o"} 0+1x90`,
			`ropeline_origin_requests_total{instance="a",room="",origin="http://o"} 0x90
		ropeline_origin_failures_total{instance="a",room="",origin="http://o"} 0x90`,
		},
	},
	{
		"RopelineUnavailable",
		`ropeline_requests_total{instance="a",outcome="unavailable"} 0+10x90
		ropeline_requests_total{instance="a",outcome="admitted"} 0+100x90`,
		`{instance="a"}`,
		[]string{`ropeline_requests_total{instance="a",outcome="unavailable"} 0x90
		ropeline_requests_total{instance="a",outcome="admitted"} 0+100x90`},
	},
	// The time of the test begins with 1970.
	{
		"RopelineCertificateExpires", `ropeline_certificate_expiry_timestamp_seconds{instance="a",name="x"} 86400x90`, `{instance="a", name="x"}`,
		[]string{`ropeline_certificate_expiry_timestamp_seconds{instance="a",name="x"} 2592000x90`},
	},
	{
		"RopelineCertificateBroken", `ropeline_certificate_ok{instance="a",name="x"} 0x90`, `{instance="a", name="x"}`,
		[]string{`ropeline_certificate_ok{instance="a",name="x"} 1x90`},
	},
	{
		"RopelineAccessLogDropped", `ropeline_access_log_dropped_lines_total{instance="a"} 0+1x90`, `{instance="a"}`,
		[]string{`ropeline_access_log_dropped_lines_total{instance="a"} 8x90`},
	},
	{
		"RopelineLogDropped", `ropeline_log_dropped_lines_total{instance="a"} 0+1x90`, `{instance="a"}`,
		[]string{`ropeline_log_dropped_lines_total{instance="a"} 8x90`},
	},
	{"RopelineSeriesLeftOut", `ropeline_series_left_out{instance="a"} 2x90`, `{instance="a"}`, []string{`ropeline_series_left_out{instance="a"} 0x90`}},
}
