// How numbers, times and states are written.
const STATES = { halted: "Halted", retrying: "Retrying", paused: "Paused", behind: "Behind", starting: "Starting", up_to_date: "Up to date" };
const collator = new Intl.Collator("en", { numeric: true });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const count = (n) => (n >= 1e7 ? short : whole).format(n);
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many ?? one + "s"}`;
const rateText = (n) => (n === 0 ? "0" : n < 10 ? n.toFixed(1) : count(n));
function duration(s) {
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}
const ago = (s) => (s < 1 ? "just now" : s < 60 ? `${Math.floor(s)} s ago` : `${duration(s)} ago`);
// Of times that records name, which may be beyond what a date of the browser is.
function moment(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.valueOf()) ? `${seconds} s since 1970` : date.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}
// The time of day where it is today's.
const clockTime = (seconds, now) => (moment(seconds).slice(0, 10) === moment(now).slice(0, 10) ? moment(seconds).slice(11) : moment(seconds).slice(0, 16));
function size(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0, value = n;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
const STAGES = [["to_connector", "Source to connector"], ["to_kafka", "Connector to Kafka"], ["to_table", "Kafka to table"]];
function stagesText(stages) {
  const parts = [["to_connector", "to the connector"], ["to_kafka", "from there to Kafka"], ["to_table", "from there to the table"]];
  return parts.map(([id, words]) => `${words}: ${stages[id] === null ? "not known" : duration(stages[id])}`).join(", ");
}
