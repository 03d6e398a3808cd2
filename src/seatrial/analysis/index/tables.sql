CREATE SCHEMA stored;
CREATE TABLE stored.state (name VARCHAR, value VARCHAR);
CREATE TABLE stored.files (number BIGINT, name VARCHAR, stamp VARCHAR);
CREATE TABLE stored.spans (file VARCHAR, start BIGINT, "end" BIGINT, crc BIGINT, lines BIGINT);
CREATE TABLE stored.documents (kind VARCHAR, name VARCHAR, stamp VARCHAR);
CREATE TABLE stored.damaged (text VARCHAR);
CREATE TABLE stored.texts (number BIGINT, text VARCHAR);
CREATE TABLE stored.keys (number BIGINT, figure VARCHAR, point VARCHAR);
CREATE TABLE stored.groups (number BIGINT, series VARCHAR, point VARCHAR, rank BIGINT);
CREATE TABLE stored.records (number BIGINT, experiment BIGINT, repeat BIGINT, ord BIGINT, t0 DOUBLE, wall_s DOUBLE,
  state BIGINT, reason BIGINT, evidence BIGINT, stage BIGINT, checked BIGINT, host BIGINT, file BIGINT, start BIGINT,
  length BIGINT, n_samples BIGINT, error BIGINT, line BIGINT, samples_start BIGINT, samples_length BIGINT,
  samples_crc BIGINT, block BIGINT, row BIGINT);
CREATE TABLE stored.blocks (number BIGINT, experiment BIGINT, packed BLOB);
CREATE TABLE stored.results (experiment BIGINT, packed BLOB);
CREATE TABLE stored.readings (record BIGINT, key BIGINT, seq BIGINT, value DOUBLE, minimum DOUBLE, maximum DOUBLE,
  n BIGINT, share DOUBLE, resolution DOUBLE, impossible BOOLEAN);
CREATE TABLE stored.samples (record BIGINT, grp BIGINT, i BIGINT, elapsed_s DOUBLE, work BIGINT);
CREATE TABLE stored.experiments (number BIGINT, id VARCHAR, benchmark VARCHAR, parameters VARCHAR, environment VARCHAR,
  machine VARCHAR, place BIGINT, outcome VARCHAR, reason VARCHAR, evidence VARCHAR, n_repeats BIGINT, n_ok BIGINT,
  first_t0 DOUBLE, last_t0 DOUBLE, wall_s DOUBLE, superseded BOOLEAN);
CREATE TABLE stored.figures (experiment BIGINT, place BIGINT, figure VARCHAR, figure_parameters VARCHAR, unit VARCHAR,
  better VARCHAR, median DOUBLE, ci95_low DOUBLE, ci95_high DOUBLE, minimum DOUBLE, maximum DOUBLE, n_repeats BIGINT,
  n_samples BIGINT, limit_value DOUBLE, limit_basis VARCHAR, limit_derivation VARCHAR, fraction_of_limit DOUBLE);
CREATE TABLE stored.machines (key VARCHAR, name VARCHAR);
CREATE TABLE stored.environments (key VARCHAR, name VARCHAR);
CREATE TABLE stored.facts (subject VARCHAR, key VARCHAR, device VARCHAR, name VARCHAR, value VARCHAR, number DOUBLE,
  unit VARCHAR, source VARCHAR, kind VARCHAR);
