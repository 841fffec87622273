-- What ports heard by LLDP, apart from the rest of the inspections: a list of all cables reads these few bytes of each host.

-- +goose Up

CREATE TABLE heard (
  host_id TEXT    NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  at      INTEGER NOT NULL, -- of the newest inspection
  ports   TEXT    NOT NULL, -- those that heard anything then, '' for none
  before  TEXT    NOT NULL  -- those of the inspection before
) STRICT;

INSERT INTO heard (host_id, at, ports, before)
SELECT host_id, at, ports, before FROM (
  SELECT i.host_id, i.at,
    COALESCE((SELECT NULLIF(json_group_array(json_object('name', p.value ->> 'name', 'mac', p.value ->> 'mac',
      'speedMbps', COALESCE(p.value ->> 'speedMbps', 0), 'neighbour', json(p.value -> 'neighbour'))), '[]')
      FROM json_each(NULLIF(i.hardware, ''), '$.ports') AS p WHERE p.value -> 'neighbour' IS NOT NULL), '') AS ports,
    COALESCE((SELECT NULLIF(json_group_array(json_object('name', p.value ->> 'name', 'mac', p.value ->> 'mac',
      'speedMbps', COALESCE(p.value ->> 'speedMbps', 0), 'neighbour', json(p.value -> 'neighbour'))), '[]')
      FROM inspections AS b, json_each(NULLIF(b.hardware, ''), '$.ports') AS p
      WHERE b.host_id = i.host_id AND b.n = i.n - 1 AND p.value -> 'neighbour' IS NOT NULL), '') AS before
  FROM (SELECT host_id, MAX(n) AS n FROM inspections GROUP BY host_id) AS l
  JOIN inspections AS i ON i.host_id = l.host_id AND i.n = l.n
) WHERE ports <> '' OR before <> '';
