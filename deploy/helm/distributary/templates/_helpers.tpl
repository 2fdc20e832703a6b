{{- define "distributary.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* The release's name, with the chart's where that isn't in it; short enough for what is put behind it. */ -}}
{{- define "distributary.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "distributary.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "distributary.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "distributary.selector" -}}
app.kubernetes.io/name: {{ include "distributary.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "distributary.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "distributary.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "distributary.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "distributary.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "distributary.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "distributary.claim" -}}
{{ default (printf "%s-data" (include "distributary.fullname" .)) .Values.persistence.existingClaim }}
{{- end }}

{{- /* Not empty where executors have pods of their own; such ones can't share a volume that one node mounts. */ -}}
{{- define "distributary.hasExecutors" -}}
{{- if or .Values.executors.enabled (eq .Values.mode "sparkapplication") -}}
{{- if and .Values.persistence.enabled (not .Values.persistence.existingClaim) (not (has "ReadWriteMany" .Values.persistence.accessModes)) -}}
{{- fail "executors in pods of their own write to the lake too: have it in an object store (persistence.enabled: false, config.target.path, config.checkpoint), or on a volume with ReadWriteMany in persistence.accessModes" -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{- /* The config as the service reads it: `include` with the files of the tables, Spark's properties with what executors
in pods of their own need. */ -}}
{{- define "distributary.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- /* The names under which the Service is asked for. */ -}}
{{- $fullname := include "distributary.fullname" . -}}
{{- $names := list $fullname (printf "%s.%s" $fullname .Release.Namespace) (printf "%s.%s.svc" $fullname .Release.Namespace) -}}
{{- $http := default dict $config.http -}}
{{- if .Values.ingress.enabled -}}
{{- $names = append $names .Values.ingress.host -}}
{{- end -}}
{{- $_ := set $http "names" (uniq (concat $names (default list $http.names))) -}}
{{- $_ := set $config "http" $http -}}
{{- $_ := set $config "include" (append (default list $config.include) "tables/*.yaml") -}}
{{- if and .Values.executors.enabled (eq .Values.mode "deployment") -}}
{{- $_ := set $config "spark" (mergeOverwrite (include "distributary.sparkOnKubernetes" . | fromYaml) (default dict $config.spark)) -}}
{{- end -}}
{{- toYaml $config }}
{{- end }}

{{- /* The same for one of `jobs`, whose Spark is in its own pod. Takes `root` and `job`. */ -}}
{{- define "distributary.jobConfig" -}}
{{- $config := include "distributary.config" .root | fromYaml -}}
{{- $spark := deepCopy (default dict .root.Values.config.spark) -}}
{{- with .job.memory -}}
{{- $_ := set $spark "spark.driver.memory" . -}}
{{- end -}}
{{- $_ := set $config "spark" $spark -}}
{{- toYaml $config }}
{{- end }}

{{- /* What of the config a start alone takes: all but what is said of tables. */ -}}
{{- define "distributary.configChecksum" -}}
{{- omit (include "distributary.config" . | fromYaml) "defaults" "tables" "include" "paused" | toJson | sha256sum }}
{{- end }}

{{- /* For a driver in a Deployment. POD_IP and POD_NAME are in its environment. */ -}}
{{- define "distributary.sparkOnKubernetes" -}}
spark.master: k8s://https://kubernetes.default.svc
spark.driver.host: ${env:POD_IP}
spark.driver.port: 7078
spark.driver.blockManager.port: 7079
spark.executor.instances: {{ .Values.executors.instances }}
spark.executor.cores: {{ .Values.executors.cores }}
spark.executor.memory: {{ .Values.executors.memory }}
{{- with .Values.executors.memoryOverhead }}
spark.executor.memoryOverhead: {{ . }}
{{- end }}
spark.kubernetes.namespace: {{ .Release.Namespace }}
spark.kubernetes.container.image: {{ include "distributary.image" . }}
spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
spark.kubernetes.driver.pod.name: ${env:POD_NAME}
spark.kubernetes.executor.podTemplateFile: /etc/distributary-executor/template.yaml
{{- end }}

{{- /* What `distributary run` gives to Java by itself, and what can't be set any more once it runs. */ -}}
{{- define "distributary.sparkConf" -}}
{{- $options := "-Duser.timezone=UTC -XX:-DontCompileHugeMethods -XX:+ExitOnOutOfMemoryError -Dlog4j2.level=warn" -}}
{{- $conf := dict "spark.driver.extraJavaOptions" $options "spark.executor.extraJavaOptions" $options -}}
{{- range $key, $value := .Values.sparkApplication.sparkConf -}}
{{- if hasKey $conf $key -}}
{{- $_ := set $conf $key (printf "%s %s" (get $conf $key) $value) -}}
{{- else -}}
{{- $_ := set $conf $key (toString $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $conf }}
{{- end }}

{{- /* Labels of a monitor, and how Prometheus asks. Both take `root` and `monitor`: the values of the monitor. */ -}}
{{- define "distributary.monitorLabels" -}}
{{ include "distributary.labels" .root }}
{{- with .monitor.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "distributary.monitorEndpoint" -}}
- port: http
  path: /metrics
  interval: {{ .monitor.interval }}
  {{- with .monitor.token.name }}
  authorization:
    credentials: {name: {{ . }}, key: {{ $.monitor.token.key }}}
  {{- end }}
{{- end }}
